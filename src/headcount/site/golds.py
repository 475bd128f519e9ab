"""The true prevalences, in versions."""

from __future__ import annotations

import hashlib
import zlib
from datetime import datetime

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from headcount._core.types import Floats
from headcount.site.errors import NotFoundError
from headcount.site.lab import LabTask
from headcount.site.models import Gold, Task


def pack_array(values: Floats) -> bytes:
    """Numbers as bytes, compressed."""
    return zlib.compress(np.ascontiguousarray(values, dtype="<f8").tobytes(), 1)


def unpack_array(data: bytes, columns: int = 0) -> Floats:
    """Numbers from `pack_array`; as a table if `columns` is given."""
    values = np.frombuffer(zlib.decompress(data), dtype="<f8")
    return values.reshape(-1, columns) if columns else values


def add_first_golds(session: Session, tasks: dict[str, LabTask], at: datetime) -> None:
    """Keep the gold of every task that is new to the site as its version 1."""
    for name, lab_task in tasks.items():
        task = session.scalar(select(Task).where(Task.name == name))
        if task is None:
            task = Task(name=name, measure=lab_task.measures[0])
            session.add(task)
            session.flush()
        for split in lab_task.counts:
            truth = lab_task.task.truth(split)
            query = select(Gold.id).where(Gold.task_id == task.id, Gold.split == split)
            if truth is not None and session.scalar(query.limit(1)) is None:
                session.add(gold_row(task.id, split, 1, truth, "as built", at, current=True))


def current_gold(session: Session, task: Task, split: str) -> Gold:
    """The version that boards stand on."""
    gold = session.scalar(
        select(Gold).where(Gold.task_id == task.id, Gold.split == split, Gold.current)
    )
    if gold is None:
        raise NotFoundError(f"{task.name} has no {split} samples.")
    return gold


def gold_row(
    task_id: int, split: str, version: int, truth: Floats, note: str, at: datetime, current: bool
) -> Gold:
    """Row of a version of the true prevalences."""
    content = pack_array(truth)
    return Gold(
        task_id=task_id,
        split=split,
        version=version,
        current=current,
        sha256=hashlib.sha256(np.ascontiguousarray(truth, "<f8").tobytes()).hexdigest(),
        note=note,
        content=content,
        created_at=at,
    )
