"""Vectors of the items of a task."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from headcount.lequa.task import Task
from headcount.text.names import make_vectorizer


def features(task: Task, split: str, vectorizer: str = "tfidf") -> tuple[Any, Any]:
    """Vectors of the training items and of a split; texts by `vectorizer`, or as they are ('')."""
    if task.form == "vector" or not vectorizer:
        train = task.train.X if task.form == "text" else np.asarray(task.train.X)
        return train, task.samples(split).X
    return _vectors(str(task.folder), split, vectorizer)


@lru_cache(maxsize=2)
def _vectors(folder: str, split: str, vectorizer: str) -> tuple[Any, Any]:
    task = Task(Path(folder))
    made = make_vectorizer(vectorizer)
    train = made.fit_transform(task.train.X)
    return train, made.transform(task.samples(split).X)
