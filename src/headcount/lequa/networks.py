"""The networks of the lab: they learn from the development samples of a task as well."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from headcount._core.types import Floats
from headcount.bags import Bags
from headcount.exceptions import InputError
from headcount.lequa.task import Task
from headcount.lequa.vectors import features
from headcount.methods.base import Quantifier
from headcount.study import Method


class FromDevSamples(Quantifier):
    """A network that is fitted on the development samples of a task, wherever it is fitted.

    Only the place of the task is kept, so that it travels light to other processes.

    Parameters
    ----------
    network : quantifier of headcount.neural
    folder : path
        Of the task in its compact form.
    vectorizer : str, default 'tfidf'
        What turns texts into vectors, for a task of texts.
    labels : bool, default True
        Whether the labelled items are used too; QuaNet needs them.
    """

    def __init__(
        self,
        network: Any = None,
        *,
        folder: str | Path = "",
        vectorizer: str = "tfidf",
        labels: bool = True,
    ):
        self.network = network
        self.folder = folder
        self.vectorizer = vectorizer
        self.labels = labels

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from labelled items and from the development samples."""
        task = Task(Path(self.folder))
        _, pool = features(task, "dev", self.vectorizer)
        bags = task.samples("dev").bags
        if bags.prevalence is None:
            raise InputError(f"{task.name} has no dev_prevalences.txt to learn from.")
        fresh = clone(self.network)
        self.network_ = (
            fresh.fit(X, y, bags=bags, pool=pool) if self.labels else fresh.fit_bags(pool, bags)
        )
        self.classes_ = self.network_.classes_
        return self

    def predict_bags(self, X: Any, bags: Bags) -> Floats:
        """Estimate the prevalences of many bags of the pool `X`, a row a bag."""
        check_is_fitted(self, "network_")
        return np.asarray(self.network_.predict_bags(X, bags))


def neural_methods(task: Task, vectorizer: str = "tfidf") -> list[Method]:
    """UniOviedo (Team1) for vectors, and QuaNet with the lab's settings for two classes.

    They need torch. UniOviedo (Team1) took texts as vectors of a BERT model: build a task of
    vectors for that.
    """
    from headcount.neural import QuaNet, Training
    from headcount.systems import lequa2022

    where: dict[str, Any] = {"folder": str(task.folder), "vectorizer": vectorizer}
    found = []
    if task.form == "vector":
        team1 = FromDevSamples(lequa2022.uni_oviedo1(), labels=False, **where)
        found.append(Method("UniOviedo(Team1)", team1))
    if task.n_classes == 2:
        training = Training(
            epochs=500,
            learning_rate=1e-4,
            end_learning_rate=1e-4,
            weight_decay=0.0,
            batch_size=10,
        )
        embedding = None if task.form == "vector" else 100
        quanet = QuaNet(embedding=embedding, training=training)
        found.append(Method("QuaNet", FromDevSamples(quanet, **where)))
    return found
