"""Studies: data sets x methods x bags, run without babysitting, resumed where they stopped."""

from headcount.study.config import example, load
from headcount.study.results import Results
from headcount.study.runner import run, status
from headcount.study.study import Method, Study

__all__ = ["Method", "Results", "Study", "example", "load", "run", "status"]
