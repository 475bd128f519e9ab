"""Networks on the workloads of the shape of LeQua 2022: error, time, growth, and speed of QuaNet.

    python benchmarks/neural.py learn T1A --seconds 600     # from labelled items, beside the others
    python benchmarks/neural.py bags T1A --seconds 3600     # HistNetQ from bags alone
    python benchmarks/neural.py speed --repeat 3            # QuaNet against QuaPy 0.2.3, if there
    python benchmarks/neural.py moved --repeat 5            # IWDAN against BBSE, classes moved

The first half of the pool gives the development bags, the second half the test bags. A network has
`--seconds` to be fitted; the table says how many epochs that were. Times are of the processor,
which other work on the machine does not lengthen much; `load` says how much of it there was.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

import workloads
from headcount import BBSE, CC, MLPE, SLD, Bags, BayesQuantifier, UniformPrevalence, measure
from headcount.neural import (
    IWDAN,
    DeepSets,
    GMNet,
    HistNetQ,
    QuaNet,
    Sampling,
    SetTransformer,
    Training,
)

TEST_BAGS = 1000
DEV_BAGS = 1000
EPOCHS = 1  # of the comparison of speed
NETWORKS = {
    "HistNetQ": HistNetQ,
    "DeepSets": DeepSets,
    "SetTransformer": SetTransformer,
    "GMNet": GMNet,
}
HEAD = "| {} | fit, CPU s | 1,000 bags, CPU s | AE | RAE | epochs | load |\n" + "|---" * 7 + "|"


class Workload:
    """Labelled items, development pool and test bags of a task; `draw` 0 is that of all tables."""

    def __init__(self, task: str, draw: int = 0):
        spec = workloads.SPECS[task]
        if draw:
            task = f"{task}-{draw}"
            workloads.SPECS[task] = replace(spec, seed=spec.seed + 10 * draw)
        data, self.spec = workloads.make(task), spec
        self.X, self.y = data["X_train"], data["y_train"]
        half = len(data["X_pool"]) // 2
        self.dev, self.y_dev = data["X_pool"][:half], data["y_pool"][:half]
        self.pool = data["X_pool"][half:]
        self.test = self._bags(data["y_pool"][half:], TEST_BAGS, 7)

    def _bags(self, y: np.ndarray, n: int, seed: int) -> Bags:
        return UniformPrevalence(n_bags=n, size=self.spec.bag_size, random_state=seed).draw(y)

    def dev_bags(self, n: int) -> Bags:
        """Development bags, of which fewer are the first of more."""
        return self._bags(self.y_dev, n, 8)

    def report(self, name: str, fit: Callable[[], Any], note: Callable[[Any], str] = str) -> None:
        """Fit, estimate, and print a row of the table."""
        start = time.process_time()
        fitted = fit()
        took = time.process_time() - start
        start = time.process_time()
        answers = fitted.predict_bags(self.pool, self.test)
        asked = time.process_time() - start
        true, sizes = self.test.prevalence, self.test.sizes
        ae = measure("ae")(true, answers).mean()
        rae = measure("rae")(true, answers, sizes=sizes).mean()
        load = os.getloadavg()[0]
        print(
            f"| {name} | {took:.1f} | {asked:.2f} | {ae:.4f} | {rae:.3f} | {note(fitted)} | "
            f"{load:.0f} |",
            flush=True,
        )


def training_of(q: Any, args: argparse.Namespace) -> Training:
    own = {"time_limit": args.seconds, "n_threads": args.threads}
    settings = q.training_settings().get_params() | own
    return Training(**settings | ({"epochs": args.epochs} if args.epochs else {}))


def learn(args: argparse.Namespace) -> None:
    """Networks from labelled items, beside what works on a classifier's scores."""
    work = Workload(args.task, args.draw)
    print(HEAD.format("method"))
    lr = LogisticRegression(max_iter=1000)
    for name, q in {
        "MLPE": MLPE(),
        "CC": CC(lr, cv=None),
        "SLD-BCTS": SLD(lr, calibrator="bcts"),
        "BayesQuantifier": BayesQuantifier(lr, measure="rae"),
    }.items():
        if not args.only or name in args.only.split(","):
            work.report(name, lambda q=q: q.fit(work.X, work.y), lambda _: "-")
    for name, kind in {**NETWORKS, "QuaNet": QuaNet}.items():
        if args.only and name not in args.only.split(","):
            continue
        q = kind(random_state=args.draw)
        q.training = training_of(q, args)
        sampling = q.sampling_settings().get_params() | {"bag_size": work.spec.bag_size}
        q.sampling = Sampling(**sampling)
        work.report(name, lambda q=q: q.fit(work.X, work.y), epochs_of)
        if name == "QuaNet":
            for method in q.statistics_:
                show_statistic(work, q, method)


def show_statistic(work: Workload, q: QuaNet, method: Any) -> None:
    scores = q.classifier_.predict_proba(work.pool)

    class Told:
        def predict_bags(self, _: Any, bags: Bags) -> Any:
            return method.predict_scores(scores, bags)

    work.report(f"its {type(method).__name__}", Told, lambda _: "-")


def grow(args: argparse.Namespace) -> None:
    """HistNetQ from bags with known shares and nothing else."""
    work = Workload(args.task)
    print(HEAD.format("bags"))
    for n in map(int, args.counts.split(",")):
        q = HistNetQ()
        q.training = training_of(q, args)
        work.report(
            str(n),
            lambda q=q, n=n: q.fit_bags(work.dev, work.dev_bags(n)),
            epochs_of,
        )


def speed(args: argparse.Namespace) -> None:
    """QuaNet with the same architecture, epochs and bags, here and in QuaPy, in turn.

    Both are run once before, so that no import is timed.
    """
    work = Workload("T1A")

    def ours(batch: int) -> QuaNet:
        training = {"epochs": EPOCHS, "patience": 1000, "weight_decay": 0.0, "batch_size": batch}
        sampling = Sampling(bag_size=work.spec.bag_size, bags_per_epoch=500, validation_bags=100)
        how = Training(**training, n_threads=args.threads)
        return QuaNet(training=how, sampling=sampling).fit(work.X, work.y)

    for run in range(args.repeat + 1):
        if run == 1:
            print(HEAD.format("QuaNet of"))
        with contextlib.redirect_stdout(sys.stdout if run else io.StringIO()):
            for batch in (10, 50):
                work.report(f"headcount, {batch} bags a step", lambda b=batch: ours(b), epochs_of)
            work.report("QuaPy 0.2.3", lambda: Peer(args).fit(work), lambda _: str(EPOCHS))


def epochs_of(q: Any) -> str:
    """Epochs of a training, as text."""
    return str(len(q.history_))


def moved(args: argparse.Namespace) -> None:
    """IWDAN with its defaults beside BBSE on made problems, of which most move the classes.

    Classes lie apart in the first direction by `gap`, in the second by 1; the target is moved by
    `move` in the direction `along`, and has other shares.
    """
    print(
        "| classes | dimensions | gap | moved | BBSE | IWDAN | IWDAN is better in |\n"
        + "|---" * 7
        + "|"
    )
    for k, d, gap, move, along in (
        (2, 2, 4.0, 0.0, 1),
        (2, 2, 3.0, 1.0, 1),
        (2, 2, 3.0, 2.0, 1),
        (2, 2, 3.0, 4.0, 1),
        (2, 10, 3.0, 2.0, 1),
        (2, 2, 2.0, 2.0, 1),
        (2, 2, 3.0, 1.0, 0),
        (3, 2, 3.0, 2.0, 1),
    ):
        off = []
        for seed in range(100, 100 + args.repeat):
            rng = np.random.default_rng(seed)
            shares = rng.dirichlet(np.ones(k))
            X, y = _made(rng, np.full(k, 1 / k), d, gap)
            target, y_target = _made(rng, shares, d, gap)
            target[:, along] += move
            true = np.bincount(y_target, minlength=k) / len(y_target)
            answers = (q.fit(X, y).predict(target) for q in _movers(args))
            off.append([np.abs(a - true).mean() for a in answers])
        bbse, ours = np.array(off).T
        way = f"{move:g}, {('strong', 'weak')[along]} direction" if move else "no"
        print(
            f"| {k} | {d} | {gap:g} | {way} | {bbse.mean():.3f} | {ours.mean():.3f} | "
            f"{(ours < bbse).sum()} of {len(off)} |",
            flush=True,
        )


def _made(
    rng: np.random.Generator, shares: np.ndarray, d: int, gap: float
) -> tuple[np.ndarray, np.ndarray]:
    y = rng.choice(len(shares), 1000, p=shares)
    X = rng.normal(size=(len(y), d))
    X[:, 0] += gap * (y - (len(shares) - 1) / 2)
    X[:, 1] += np.where(y % 2, 0.5, -0.5)
    return X, y


def _movers(args: argparse.Namespace) -> tuple[Any, Any]:
    return BBSE(LogisticRegression()), IWDAN(n_threads=args.threads)


class Peer:
    """QuaPy's QuaNet behind the same two calls."""

    def __init__(self, args: argparse.Namespace):
        self.args = args

    def fit(self, work: Workload) -> Peer:
        """Fit with as many epochs and bags."""
        import quapy as qp
        import torch
        from quapy.data import LabelledCollection
        from quapy.method.meta import QuaNet as TheirQuaNet

        torch.set_num_threads(self.args.threads)
        qp.environ["SAMPLE_SIZE"] = work.spec.bag_size

        class Embedding(LogisticRegression):
            def transform(self, X: Any) -> Any:
                return X

        self.net = TheirQuaNet(
            Embedding(max_iter=1000),
            sample_size=work.spec.bag_size,
            n_epochs=EPOCHS + 1,  # its loop ends one short
            tr_iter_per_poch=500,
            va_iter_per_poch=100,
            patience=1000,
            checkpointdir=tempfile.mkdtemp(),
            device="cpu",
        )
        self.net.fit(*LabelledCollection(work.X, work.y).Xy)
        return self

    def predict_bags(self, pool: np.ndarray, bags: Bags) -> np.ndarray:
        """Estimate one bag after the other."""
        return np.stack([self.net.predict(pool[rows]) for rows in bags])


def main() -> None:
    """Read the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["learn", "bags", "speed", "moved"])
    parser.add_argument("task", nargs="?", default="T1A", choices=["T1A", "T1B"])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=0, help="at most; 0: as the method has it")
    parser.add_argument("--only", default="")
    parser.add_argument("--draw", type=int, default=0, help="of classes, items and weights")
    parser.add_argument("--repeat", type=int, default=1, help="of speed and moved")
    parser.add_argument("--counts", default=f"125,250,500,{DEV_BAGS}")
    args = parser.parse_args()
    {"learn": learn, "bags": grow, "speed": speed, "moved": moved}[args.what](args)


if __name__ == "__main__":
    main()
