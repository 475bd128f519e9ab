"""The LeQua lab: read, build, check, score and solve quantification shared tasks."""

from headcount.lequa.build import build_lab
from headcount.lequa.corpus import make_corpus
from headcount.lequa.opening import open_task
from headcount.lequa.runs import check_run, read_run, write_run
from headcount.lequa.score import score_runs
from headcount.lequa.solve import TaskData, baselines, measure_leak, run_baselines, solve
from headcount.lequa.task import Samples, Task

__all__ = [
    "Samples",
    "Task",
    "TaskData",
    "baselines",
    "build_lab",
    "check_run",
    "make_corpus",
    "measure_leak",
    "open_task",
    "read_run",
    "run_baselines",
    "score_runs",
    "solve",
    "write_run",
]
