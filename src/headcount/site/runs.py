"""Runs: take one, show it to those who may see it, choose, withdraw."""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from headcount._core.types import Floats
from headcount.site import phases
from headcount.site.accounts import Actor
from headcount.site.audit import record
from headcount.site.errors import ConflictError, NotFoundError
from headcount.site.golds import current_gold
from headcount.site.models import Gold, Phase, Run, RunFile, Score, Task, Team, User
from headcount.site.scoring import score_run
from headcount.site.teams import active_team, baseline_team
from headcount.site.texts import file_stem

if TYPE_CHECKING:
    from headcount.site.context import Site


@dataclass(frozen=True)
class Upload:
    """What a participant sends."""

    content: bytes
    file_name: str = "run.csv"
    description: str = ""
    tags: str = ""
    phase_id: int | None = None
    client_key: str | None = None  # the same key twice is the same upload
    baseline: str | None = None  # organisers may post a run as a baseline


@dataclass(frozen=True)
class _Checked:
    """A run that was found valid, scored, and not kept yet."""

    task: Task
    phase: Phase
    gold: Gold
    estimates: Floats
    scores: list[Score]
    packed: bytes
    at: datetime


def submit(site: Site, actor: Actor, task_name: str, upload: Upload) -> Run:
    """Check, score and keep a run in one transaction; a faulty one leaves nothing behind.

    What counts for the deadline is the moment at which the whole file was here.
    """
    lab_task = site.task(task_name)
    at = site.clock()
    with site.database.reading() as session:
        task = get_task(session, task_name)
        phase = phases.current_phase(session, at, upload.phase_id)
        gold = current_gold(session, task, phase.split)
        if upload.baseline is None:
            team = active_team(session, actor.user)
            known = _same_upload(session, team, upload)
            if known is not None:
                return known
            phases.require_quota(session, phase, task, team, at)
        else:
            actor.require_organiser()
        estimates = site.read_upload(lab_task, phase.split, upload.content)
        scores = score_run(site, estimates, gold, lab_task)
    packed = zlib.compress(upload.content, 1)
    checked = _Checked(task, phase, gold, estimates, scores, packed, at)
    with site.database.writing() as session:
        return _keep(site, session, actor, upload, checked)


def _keep(site: Site, session: Session, actor: Actor, upload: Upload, checked: _Checked) -> Run:
    """The transaction: the team's row is locked, so that the last place of a quota goes once."""
    task, at, scores = checked.task, checked.at, checked.scores
    session.get_one(Task, task.id, with_for_update={"read": True})  # no new gold meanwhile
    if upload.baseline is None:
        team = active_team(session, session.get_one(User, actor.user.id), lock=True)
    else:
        team = baseline_team(session, upload.baseline, at)
    known = _same_upload(session, team, upload)
    if known is not None:
        return known
    phase = phases.current_phase(session, at, checked.phase.id)  # it may be frozen meanwhile
    phases.require_quota(session, phase, task, team, at)
    newest = current_gold(session, task, phase.split)
    if newest.id != checked.gold.id:
        scores = score_run(site, checked.estimates, newest, site.task(task.name))
    run = _row(actor, upload, task, phase, team, at)
    session.add(run)
    session.flush()
    for score in scores:
        score.run_id = run.id
    session.add_all([RunFile(run_id=run.id, content=checked.packed), *scores])
    return run


def _row(actor: Actor, upload: Upload, task: Task, phase: Phase, team: Team, at: datetime) -> Run:
    return Run(
        task_id=task.id,
        phase_id=phase.id,
        team_id=team.id,
        user_id=actor.user.id,
        submitted_at=at,
        file_name=upload.file_name,
        description=upload.description,
        tags=upload.tags,
        sha256=hashlib.sha256(upload.content).hexdigest(),
        size=len(upload.content),
        chosen=False,
        client_key=upload.client_key,
    )


def _same_upload(session: Session, team: Team, upload: Upload) -> Run | None:
    if upload.client_key is None:
        return None
    query = select(Run).where(Run.team_id == team.id, Run.client_key == upload.client_key)
    return session.scalar(query)


def get_task(session: Session, name: str) -> Task:
    """A task's row by its name."""
    task = session.scalar(select(Task).where(Task.name == name))
    if task is None:
        raise NotFoundError("there is no such task.")
    return task


@dataclass(frozen=True)
class RunView:
    """A run as someone may see it; without scores where the phase hides them."""

    run: Run
    task: str
    phase: Phase
    team: Team
    scores: dict[str, tuple[float, float]] = field(default_factory=dict)  # mean, deviation
    counts: bool | None = None  # None where it cannot be told
    visible: bool = False
    details: bool = False

    @property
    def download_name(self) -> str:
        """Name of the file when it is downloaded."""
        return f"{file_stem(self.team.name)}-{self.task}-{self.run.id}.csv"


def own_run(session: Session, actor: Actor, run_id: int) -> Run:
    """A run of the actor's own team, or any for organisers; else it does not exist."""
    run = session.get(Run, run_id)
    mine = run is not None and run.team_id == actor.user.team_id
    if run is None or not (mine or actor.is_organiser):
        raise NotFoundError("there is no such run.")
    return run


def view_run(session: Session, run: Run, at: datetime, *, organiser: bool = False) -> RunView:
    """What may be seen of a run now."""
    return view_runs(session, [run], at, organiser=organiser)[0]


def view_runs(
    session: Session, runs: list[Run], at: datetime, *, organiser: bool = False
) -> list[RunView]:
    """What may be seen of runs now: the only place that lets scores out to their teams."""
    views, counted = [], {}
    for run in runs:
        task, phase = session.get_one(Task, run.task_id), session.get_one(Phase, run.phase_id)
        visible = organiser or phases.is_published(phase, at)
        scores = {}
        if visible:
            gold = current_gold(session, task, phase.split)
            rows = session.scalars(
                select(Score)
                .where(Score.run_id == run.id, Score.gold_id == gold.id)
                .order_by(Score.measure != task.measure, Score.measure)
            )
            scores = {row.measure: (row.mean, row.sd) for row in rows}
        key = (task.id, phase.id)
        counts = None
        if visible or phase.counts != "best":  # the best of hidden scores would tell of them
            if key not in counted:
                counted[key] = set(counted_runs(session, task, phase).values())
            counts = run.id in counted[key]
        views.append(
            RunView(
                run=run,
                task=task.name,
                phase=phase,
                team=session.get_one(Team, run.team_id),
                scores=scores,
                counts=counts,
                visible=visible,
                details=organiser or phases.shows_details(phase, at),
            )
        )
    return views


def counted_runs(session: Session, task: Task, phase: Phase) -> dict[int, int]:
    """The run that counts for each team: last, best or chosen, as the phase says."""
    query = (
        select(Run.team_id, Run.id, Run.chosen)
        .join(Team, Team.id == Run.team_id)
        .where(Run.task_id == task.id, Run.phase_id == phase.id)
        .where(Run.withdrawn_at.is_(None), Team.state == "active")
        .order_by(Run.submitted_at, Run.id)
    )
    if phase.counts != "best":
        counted: dict[int, tuple[int, bool]] = {}
        for team_id, run_id, is_chosen in session.execute(query):
            if phase.counts == "last" or is_chosen or counted.get(team_id, (0, False))[1] is False:
                counted[team_id] = (run_id, bool(is_chosen and phase.counts == "chosen"))
        return {team_id: run_id for team_id, (run_id, _) in counted.items()}
    gold = current_gold(session, task, phase.split)
    best: dict[int, tuple[float, int]] = {}
    scored = query.add_columns(Score.mean).join(Score, Score.run_id == Run.id)
    for team_id, run_id, _, mean in session.execute(
        scored.where(Score.gold_id == gold.id, Score.measure == task.measure)
    ):
        if team_id not in best or mean < best[team_id][0]:
            best[team_id] = (mean, run_id)
    return {team_id: run_id for team_id, (_, run_id) in best.items()}


def team_runs(session: Session, team_id: int, task: Task | None = None) -> list[Run]:
    """Runs of a team, newest first."""
    query = select(Run).where(Run.team_id == team_id).order_by(Run.id.desc())
    if task is not None:
        query = query.where(Run.task_id == task.id)
    return list(session.scalars(query))


def describe(
    session: Session, actor: Actor, run_id: int, description: str, tags: str, at: datetime
) -> Run:
    """Change what is said about a run; that is possible at any time."""
    run = own_run(session, actor, run_id)
    run.description, run.tags = description, tags
    record(session, at, actor.user, "describe run", str(run.id))
    return run


def withdraw(session: Session, actor: Actor, run_id: int, at: datetime) -> Run:
    """Take a run off the board, for good; the next of the team takes its place."""
    run = _changeable(session, actor, run_id, at)
    run.withdrawn_at = at
    run.chosen = False
    record(session, at, actor.user, "withdraw run", str(run.id))
    return run


def choose_run(session: Session, actor: Actor, run_id: int, at: datetime) -> Run:
    """Let this run count, where the phase leaves the choice to the team."""
    run = _changeable(session, actor, run_id, at)
    phase = session.get_one(Phase, run.phase_id)
    if phase.counts != "chosen":
        raise ConflictError(f"in the phase {phase.name} the {phase.counts} run counts.")
    session.execute(
        update(Run)
        .where(Run.team_id == run.team_id, Run.phase_id == run.phase_id, Run.task_id == run.task_id)
        .values(chosen=False)
    )
    run.chosen = True
    record(session, at, actor.user, "choose run", str(run.id))
    return run


def _changeable(session: Session, actor: Actor, run_id: int, at: datetime) -> Run:
    run = own_run(session, actor, run_id)
    phase = session.get_one(Phase, run.phase_id)
    if not actor.is_organiser and not phases.is_open(phase, at):
        raise ConflictError(f"the phase {phase.name} is over: nothing can be changed any more.")
    if run.withdrawn_at is not None:
        raise ConflictError("the run was withdrawn.")
    return run
