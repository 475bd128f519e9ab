"""Where a training stands, how that is shown, and whether it has failed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from headcount.bags import Bags
from headcount.exceptions import HeadcountError, UnreliableWarning
from headcount.neural.losses import mean_error


@dataclass
class Progress:
    """Where a training stands: plain data."""

    learning_rate: float
    epoch: int = 0
    best: float = np.inf
    waited: int = 0  # epochs without improvement at this learning rate
    history: list[float] = field(default_factory=list)

    def note(self, error: float, patience: int, factor: float) -> bool:
        """Take in the held-out error of an epoch; tell whether it is the best so far."""
        self.epoch += 1
        self.history.append(error)
        if error < self.best:
            self.best, self.waited = error, 0
            return True
        self.waited += 1
        if self.waited >= patience:
            self.learning_rate *= factor
            self.waited = 0
        return False


def judge(progress: Progress, loss: str, held_out: Bags) -> None:
    """Say so where a training has failed: a network that learnt nothing still gives answers."""
    if not np.isfinite(progress.history).any():
        raise HeadcountError(
            "the training diverged: the error on held-out bags was never a number. Set a lower "
            "learning_rate of the training, and look for extreme values among the features."
        )
    truth = np.asarray(held_out.prevalence)
    flat = np.broadcast_to(truth.mean(axis=0), truth.shape).copy()
    constant = mean_error(loss, held_out, flat)
    if progress.best >= constant:
        warnings.warn(
            f"the network has learnt nothing: its {loss} on held-out bags is "
            f"{progress.best:.3g}, and one answer for all bags has {constant:.3g}. Train longer, "
            "with another learning_rate, or with more bags.",
            UnreliableWarning,
            stacklevel=6,
        )


@contextmanager
def shown(epochs: int, verbose: bool) -> Iterator[Callable[[Progress, str], None]]:
    """Show where a training stands on standard error, if that is wished."""
    if not verbose:
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Bar(*columns, TimeElapsedColumn(), console=Console(stderr=True)) as bar:
        task = bar.add_task("training", total=epochs)

        def show(progress: Progress, loss: str) -> None:
            words = f"held-out {loss} {progress.history[-1]:.4f}, best {progress.best:.4f}"
            bar.update(task, completed=progress.epoch, description=words)

        yield show
