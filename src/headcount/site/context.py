"""The site as its parts see it: settings, database, tasks, clock."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from typing import Any

from sqlalchemy import select

from headcount._core.types import Floats
from headcount.site import clock, intake, secrecy
from headcount.site.database import Database, migrate
from headcount.site.errors import NotFoundError
from headcount.site.golds import add_first_golds
from headcount.site.lab import LabTask, open_lab
from headcount.site.models import Lab, Phase
from headcount.site.settings import Settings

log = logging.getLogger("headcount.site")


class Site:
    """What every request needs.

    Parameters
    ----------
    settings : Settings
    clock : function, optional
        Gives the present moment; tests have clocks of their own.
    """

    def __init__(self, settings: Settings, clock: Callable[[], datetime] = clock.now):
        self.settings = settings
        self.clock = clock
        self.tasks = open_lab(settings.lab, settings.data)
        self.key = secrecy.site_key(settings.data)
        self.database = Database(settings.database_url)
        self.truths: dict[tuple[int, str], Floats] = {}
        self.boards: dict[Any, Any] = {}  # what boards.py and drawings.py have worked out

    def prepare(self) -> None:
        """Bring the tables up to date, and add what a new site or a new task needs."""
        migrate(self.database)
        with self.database.writing() as session:
            if session.get(Lab, 1) is None:
                session.add(
                    Lab(
                        id=1,
                        title="Quantification lab",
                        about="",
                        registration="open",
                        approval=False,
                        anonymous=False,
                        timezone="UTC",
                    )
                )
            add_first_golds(session, self.tasks, self.clock())
            if session.scalar(select(Phase.id).limit(1)) is None:
                session.add(_first_phase(self.clock()))

    def task(self, name: str) -> LabTask:
        """A task by its name."""
        if name not in self.tasks:
            raise NotFoundError("there is no such task.")
        return self.tasks[name]

    def read_upload(self, task: LabTask, split: str, content: bytes) -> Floats:
        """Estimates of an upload for a split of a task; an error with all faults."""
        return intake.read_upload(
            content,
            task.task.n_classes,
            task.counts[split],
            limit=self.settings.unpacked_bytes,
            folder=self.settings.data / "tmp",
        )

    def close(self) -> None:
        """Close the database."""
        self.database.close()


def _first_phase(at: datetime) -> Phase:
    """A site starts with an open development phase, so that it can be tried at once."""
    return Phase(
        name="Development",
        split="dev",
        opens_at=at,
        closes_at=None,
        hidden=False,
        details=True,
        quota_day=20,
        quota_total=None,
        counts="best",
    )
