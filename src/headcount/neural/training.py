"""The training loop of all networks: early stopping on held-out bags, resumable, repeatable."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import nn

from headcount._core import validation as check
from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.neural import checkpoints
from headcount.neural.estimating import ITEMS_PER_POOLING, FeatureMemory, estimate_bags
from headcount.neural.losses import bag_errors, mean_error
from headcount.neural.progress import Progress, judge, shown
from headcount.neural.runtime import Items, mix_seed
from headcount.neural.sampling import Source
from headcount.neural.segments import Tensor
from headcount.neural.starting import CorrectedCount

SETTLING = 60  # bags that a network is shown before training
STARTING = 1000  # bags from which it takes what it starts from


class Training(BaseEstimator):
    """How a network is trained.

    Parameters
    ----------
    epochs : int, default 200
        At most.
    batch_size : int, default 20
        Bags in a step.
    accumulate : int, default 1
        Batches whose gradients are added up to one step.
    learning_rate, end_learning_rate : float, default 1e-3 and 1e-5
        The first is multiplied by `factor` whenever the held-out error has not improved for
        `patience` epochs; training ends when it falls below the second.
    factor : float, default 0.5
    patience : int, default 10
    weight_decay : float, default 1e-5
    pretrain : int, default 0
        Epochs, at most, in which the features of items learn to classify a part of the labelled
        items first. The network then starts from a corrected count of their posteriors; 0 trains
        it as published.
    head_first : int, default 0
        Epochs after that in which the features stay as they are and the rest of the network
        learns, which takes little time. It has no effect where nothing was classified first.
    settle : bool, default True
        Whether the head of the network first sees bags scaled by their usual look. Without it,
        networks for many classes stay at a constant answer for long. It has no effect on an LSTM.
    time_limit : float, optional
        Seconds after which no new epoch starts. What is reached by then depends on the machine.
    device : str, default 'auto'
        'cpu', 'cuda', or 'auto' for a GPU where there is one.
    n_threads : int, optional
        Threads of torch during the fit; by default as many as it is set to.
    checkpoint : path, optional
        Folder that keeps the state after each epoch. The same fit, run again after it was stopped,
        goes on from there and ends with the same weights.
    verbose : bool, default False
        Show progress with the held-out error.

    Examples
    --------
    >>> Training(learning_rate=1e-4, patience=20).batch_size
    20
    """

    def __init__(
        self,
        *,
        epochs: int = 200,
        batch_size: int = 20,
        accumulate: int = 1,
        learning_rate: float = 1e-3,
        end_learning_rate: float = 1e-5,
        factor: float = 0.5,
        patience: int = 10,
        weight_decay: float = 1e-5,
        pretrain: int = 0,
        head_first: int = 0,
        settle: bool = True,
        time_limit: float | None = None,
        device: str = "auto",
        n_threads: int | None = None,
        checkpoint: str | Path | None = None,
        verbose: bool = False,
    ):
        self.epochs = epochs
        self.batch_size = batch_size
        self.accumulate = accumulate
        self.learning_rate = learning_rate
        self.end_learning_rate = end_learning_rate
        self.factor = factor
        self.patience = patience
        self.weight_decay = weight_decay
        self.pretrain = pretrain
        self.head_first = head_first
        self.settle = settle
        self.time_limit = time_limit
        self.device = device
        self.n_threads = n_threads
        self.checkpoint = checkpoint
        self.verbose = verbose

    def check(self) -> None:
        """Refuse impossible settings."""
        for name in ("epochs", "batch_size", "accumulate", "patience"):
            check.whole(name, getattr(self, name))
        check.whole("pretrain", self.pretrain, 0)
        check.whole("head_first", self.head_first, 0)
        check.at_least("learning_rate", self.learning_rate, 1e-12)
        check.at_least("end_learning_rate", self.end_learning_rate, 0, self.learning_rate)
        check.at_least("weight_decay", self.weight_decay, 0)
        check.at_least("factor", self.factor, 1e-6, 0.999)
        if self.time_limit is not None:
            check.at_least("time_limit", self.time_limit, 0)
        if self.n_threads is not None:
            check.whole("n_threads", self.n_threads)


@dataclass(frozen=True)
class Problem:
    """What a network is trained on.

    `known` gives further numbers about bags (a row each), for networks that use them. In the first
    `head_first` epochs the features of items stay as they are; after that their learning rate is
    `pace` times that of the rest.
    """

    items: Items
    source: Source
    held_out: Bags
    loss: str
    bags_per_epoch: int
    known: Callable[[Bags], Floats] | None = None
    head_first: int = 0
    pace: float = 1.0


def train(
    network: nn.Module,
    problem: Problem,
    training: Training,
    seed: int,
    fingerprint: str,
    prepare: Callable[[], None] | None = None,
) -> Progress:
    """Train in place until the held-out error no longer improves; the best weights are left.

    `prepare` is called first, unless the training goes on from a checkpoint.
    """
    run = _Run(network, problem, training, seed, fingerprint)
    if not run.resume():
        if prepare is not None:
            prepare()
        run.start()
    with shown(training.epochs, training.verbose) as show:
        while not run.done():
            run.epoch()
            show(run.progress, problem.loss)
    network.load_state_dict(run.best)
    if run.folder is not None:
        checkpoints.remove(run.folder)
    judge(run.progress, problem.loss, problem.held_out)
    return run.progress


class _Run:
    """One training: a network with its optimiser, its best weights and where it stands."""

    def __init__(
        self, network: nn.Module, problem: Problem, training: Training, seed: int, fingerprint: str
    ):
        self.network, self.problem, self.training = network, problem, training
        self.seed, self.fingerprint = seed, fingerprint
        self.folder = None if training.checkpoint is None else Path(training.checkpoint)
        self.started = time.monotonic()
        self.progress = Progress(training.learning_rate)
        groups = [
            {"params": network.features.parameters(), "pace": problem.pace},
            {"params": network.pooling.parameters(), "pace": network.pooling.pace},
            {"params": network.head.parameters(), "pace": 1.0},
        ]
        if network.start is not None:
            groups.append({"params": network.start.parameters(), "pace": 1.0})
        self.optimiser = torch.optim.AdamW(
            groups, lr=training.learning_rate, weight_decay=training.weight_decay
        )
        self.best = _copied(network)
        self.memory: FeatureMemory | None = None
        known = problem.known
        self.held_known = None if known is None else known(problem.held_out)

    def done(self) -> bool:
        """Whether time, epochs or learning rate are used up."""
        late = (
            self.training.time_limit is not None
            and self.progress.epoch > 0
            and time.monotonic() - self.started > self.training.time_limit
        )
        return (
            late
            or self.progress.epoch >= self.training.epochs
            or self.progress.learning_rate < self.training.end_learning_rate
        )

    def epoch(self) -> None:
        """Learn from new bags, and see how held-out ones are estimated."""
        problem, progress = self.problem, self.progress
        seed = mix_seed(self.seed, progress.epoch)
        torch.manual_seed(seed)  # so that an epoch is the same whether or not the fit was stopped
        for group in self.optimiser.param_groups:
            group["lr"] = progress.learning_rate * group["pace"]
        self._learn(problem.source.draw(problem.bags_per_epoch, seed))
        answers = estimate_bags(self.network, problem.items, problem.held_out, self.held_known)
        if progress.note(self._error(answers), self.training.patience, self.training.factor):
            self.best = _copied(self.network)
        if self.folder is not None:
            self._keep(self.folder)

    def _learn(self, bags: Bags) -> None:
        """One pass over bags, a step for every few of them."""
        self.network.train()
        known = None if self.problem.known is None else self.problem.known(bags)
        step, size = self.training.accumulate, self.training.batch_size
        starts = list(range(0, len(bags), size))
        for number, start in enumerate(starts, start=1):
            batch = bags[start : start + size]
            told = None if known is None else self._tensor(known[start : start + size])
            features, rows = self._features(batch.indices)
            answer, penalty = self.network.estimate(features, batch.sizes, told, rows)
            truth = self._tensor(batch.prevalence)
            errors = bag_errors(self.problem.loss, truth, answer, batch.sizes)
            ((errors.mean() + penalty) / step).backward()
            if number % step == 0 or number == len(starts):
                self.optimiser.step()
                self.optimiser.zero_grad(set_to_none=True)

    def _features(self, which: Ints) -> tuple[Tensor, Ints]:
        """Features, and the rows of them that items have: once each where chance has no part."""
        items, network = self.problem.items, self.network
        if self._features_stay():
            return self._remembered().find(which)
        self.memory = None
        if any(isinstance(m, (nn.Dropout, nn.BatchNorm1d)) for m in network.features.modules()):
            return network.describe(items.rows(which)), np.arange(len(which))
        distinct, place = np.unique(which, return_inverse=True)
        return network.describe(items.rows(distinct)), place

    def _features_stay(self) -> bool:
        """Whether features are not to learn now, or have nothing that could."""
        first = self.progress.epoch < self.problem.head_first
        return first or next(self.network.features.parameters(), None) is None

    def _remembered(self) -> FeatureMemory:
        if self.memory is None:
            was, items = self.network.training, self.problem.items
            self.network.eval()
            with torch.no_grad():
                self.memory = FeatureMemory(self.network, items, np.arange(len(items)))
            self.network.train(was)
        return self.memory

    def _error(self, answers: Floats) -> float:
        return mean_error(self.problem.loss, self.problem.held_out, answers)

    def _tensor(self, array: Any) -> Tensor:
        return torch.as_tensor(array, dtype=torch.float32, device=self.problem.items.device)

    def _keep(self, folder: Path) -> None:
        tensors = {f"network.{k}": v for k, v in self.network.state_dict().items()}
        tensors |= {f"best.{k}": v for k, v in self.best.items()}
        tensors |= checkpoints.optimiser_tensors(self.optimiser)
        state = {"fingerprint": self.fingerprint, "progress": vars(self.progress)}
        checkpoints.write(folder, tensors, state)

    def start(self) -> None:
        """Show the network some bags, so that its head starts from their usual look."""
        self.optimiser.zero_grad(set_to_none=True)
        if self.training.settle:
            self.network.eval()
            bags = self.problem.source.draw(SETTLING, mix_seed(self.seed, 0, 1))
            with torch.no_grad():
                features, rows = self._features(bags.indices)
                self.network.settle(features, rows, bags.sizes)
        if self.network.start is not None:
            self._start_from_estimate()
        self.best = _copied(self.network)

    def _start_from_estimate(self) -> None:
        """Take a simple estimate as the first answer, which is to be improved on."""
        problem, start = self.problem, self.network.start
        if isinstance(start, CorrectedCount):
            bags = problem.source.draw(STARTING, mix_seed(self.seed, 0, 2))
            start.fit(self._mean_posteriors(bags), self._tensor(bags.prevalence))
        answers = estimate_bags(self.network, problem.items, problem.held_out, self.held_known)
        self.progress.best = self._error(answers)

    def _mean_posteriors(self, bags: Bags) -> Tensor:
        memory = self._remembered()
        with torch.no_grad():
            parts = [
                self.network.mean_posteriors(*memory.find(part.indices), part.sizes)
                for part in bags.chunks(ITEMS_PER_POOLING)
            ]
        return torch.cat(parts)

    def resume(self) -> bool:
        """Go on from the state that was kept, if there is one."""
        kept = None if self.folder is None else checkpoints.read(self.folder, self.fingerprint)
        if kept is None:
            return False
        tensors, state = kept
        self.network.load_state_dict(_under("network.", tensors))
        self.best = _under("best.", tensors)
        checkpoints.restore_optimiser(self.optimiser, tensors)
        self.progress = Progress(**state["progress"])
        return True


def _copied(network: nn.Module) -> dict[str, Tensor]:
    return {k: v.detach().clone() for k, v in network.state_dict().items()}


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
