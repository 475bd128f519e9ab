"""Vectoriser, classifier and quantifier as one estimator that takes strings."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import check_is_fitted

from headcount.methods.base import Quantifier, check_quantifier_type
from headcount.methods.likelihood import SLD
from headcount.methods.meta import DelegatingQuantifier
from headcount.methods.scored import ScoreQuantifier
from headcount.text.documents import some
from headcount.text.names import make_vectorizer


@dataclass(eq=False, repr=False)
class TextQuantifier(DelegatingQuantifier):
    """A quantifier of documents.

    Parameters
    ----------
    quantifier : quantifier, default SLD with bias-corrected temperature scaling
    vectorizer : str or transformer, default 'tfidf'
        'tfidf', 'words', 'glove', 'learnt', 'minilm', a file of word vectors, the folder of a
        model, or any transformer of texts.
    fit_once : bool, default False
        The vectoriser is part of the classifier, so that scores of held-out documents come from a
        vocabulary that never saw them. True fits it once on all labelled documents, which is as
        many times faster as there are folds, and lets held-out documents shape the vocabulary (it
        makes no difference for encoders that learn nothing).

    Examples
    --------
    >>> texts = ["good day", "bad day", "good film", "bad film"] * 30
    >>> model = TextQuantifier().fit(texts, ["+", "-"] * 60)
    >>> model.predict(["so good", "how bad", "bad again", "bad film"]).round(2)
    array([0.25, 0.75])
    """

    quantifier: Any = None
    _: KW_ONLY
    vectorizer: Any = "tfidf"
    fit_once: bool = False

    def parts(self) -> list[Quantifier]:
        """The quantifier of vectors or scores."""
        return [SLD(calibrator="bcts") if self.quantifier is None else self.quantifier]

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from documents `X` with labels `y`."""
        texts = np.array(some(X), dtype=object)
        (base,) = self.parts()
        check_quantifier_type(base)
        inner = clone(base)
        vectorizer = make_vectorizer(self.vectorizer)
        self.vectorizer_: Any = None
        if isinstance(inner, ScoreQuantifier) and not self.fit_once:
            own = inner.classifier
            classifier = LogisticRegression(max_iter=1000) if own is None else own
            inner.set_params(classifier=make_pipeline(vectorizer, classifier))
            inner.fit(texts, y)
        else:
            self.vectorizer_ = vectorizer
            inner.fit(vectorizer.fit_transform(texts, y), y)
        self.members_ = [inner]
        self.classes_ = inner.classes_
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.input_tags.sparse = False
        return tags

    def prepare(self, X: Any) -> Any:
        """Documents as the quantifier takes them."""
        check_is_fitted(self, "members_")
        texts = np.array(some(X), dtype=object)
        return texts if self.vectorizer_ is None else self.vectorizer_.transform(texts)
