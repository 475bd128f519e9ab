"""Score a run, and all of them again after a correction of the true prevalences."""

from __future__ import annotations

import zlib

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from headcount._core.types import Floats
from headcount.lequa.score import score_runs
from headcount.site.audit import record
from headcount.site.context import Site
from headcount.site.errors import NotFoundError
from headcount.site.golds import gold_row, pack_array, unpack_array
from headcount.site.lab import LabTask
from headcount.site.models import Announcement, Gold, Phase, Run, RunFile, Score, Task, User

RUNS_PER_TRANSACTION = 20  # that are scored


def truth_of(site: Site, gold: Gold, lab_task: LabTask) -> Floats:
    """True prevalences of a version; kept in memory, since every upload needs them."""
    key = (gold.id, gold.sha256)
    if key not in site.truths:
        site.truths[key] = unpack_array(gold.content, lab_task.task.n_classes)
    return site.truths[key]


def score_run(site: Site, estimates: Floats, gold: Gold, lab_task: LabTask) -> list[Score]:
    """Rows of the scores of a run, which still need its number."""
    task = lab_task.task
    truth = truth_of(site, gold, lab_task)
    scores = score_runs(truth, {"run": estimates}, size=task.size, ordinal=task.ordinal)
    return [
        Score(
            gold_id=gold.id,
            measure=measure,
            mean=float(errors["run"].mean()),
            sd=float(errors["run"].std()),
            errors=pack_array(errors["run"]),
        )
        for measure, errors in scores.errors.items()
    ]


def run_content(session: Session, run: Run) -> bytes:
    """Bytes of a run as they were uploaded."""
    return zlib.decompress(session.get_one(RunFile, run.id).content)


def run_estimates(site: Site, session: Session, run: Run) -> Floats:
    """Estimates of a run that was kept."""
    task = session.get_one(Task, run.task_id)
    split = session.get_one(Phase, run.phase_id).split
    return site.read_upload(site.tasks[task.name], split, run_content(session, run))


def correct_gold(
    site: Site, by: User | None, task_name: str, split: str, content: bytes, note: str
) -> tuple[Gold, int]:
    """Take a corrected gold: score all runs by it, then put it in place for all of them at once.

    Killed before the end, the old version stays in place; the same call starts from the beginning.

    Returns
    -------
    the new version, and how many runs were scored
    """
    lab_task = site.task(task_name)
    if split not in lab_task.counts:
        raise NotFoundError(f"{task_name} has no {split} samples.")
    truth = site.read_upload(lab_task, split, content)
    at = site.clock()
    with site.database.writing() as session:
        task = session.scalars(select(Task).where(Task.name == task_name)).one()
        last = session.scalar(
            select(func.max(Gold.version)).where(Gold.task_id == task.id, Gold.split == split)
        )
        gold = gold_row(task.id, split, (last or 0) + 1, truth, note, at, current=False)
        session.add(gold)
    while _score_some(site, gold, lab_task, RUNS_PER_TRANSACTION):
        pass
    with site.database.writing() as session:
        session.get_one(Task, task.id, with_for_update=True)  # uploads wait for this transaction
        _score_missing(site, session, gold, lab_task, None)
        session.execute(
            update(Gold).where(Gold.task_id == task.id, Gold.split == split).values(current=False)
        )
        session.execute(update(Gold).where(Gold.id == gold.id).values(current=True))
        count = len(session.scalars(select(Score.run_id).where(Score.gold_id == gold.id)).all())
        runs = count // len(lab_task.measures)
        text = f"The gold of {task_name} ({split}) was corrected (version {gold.version}): {note}"
        session.add(Announcement(at=at, text=f"{text}\nAll {runs} runs were scored again."))
        record(session, at, by, "correct gold", f"{task_name} {split} version {gold.version}")
    return gold, runs


def _score_some(site: Site, gold: Gold, lab_task: LabTask, limit: int) -> int:
    with site.database.writing() as session:
        return _score_missing(site, session, gold, lab_task, limit)


def _score_missing(
    site: Site, session: Session, gold: Gold, lab_task: LabTask, limit: int | None
) -> int:
    """Score runs that have no scores by this version yet."""
    query = (
        select(Run)
        .join(Phase, Phase.id == Run.phase_id)
        .where(Run.task_id == gold.task_id, Phase.split == gold.split)
        .where(~select(Score).where(Score.run_id == Run.id, Score.gold_id == gold.id).exists())
        .order_by(Run.id)
        .limit(limit)
    )
    runs = list(session.scalars(query))
    for run in runs:
        for score in score_run(site, run_estimates(site, session, run), gold, lab_task):
            score.run_id = run.id
            session.add(score)
    return len(runs)
