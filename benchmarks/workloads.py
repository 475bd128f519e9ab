"""Fixed-seed workloads of the shape of LeQua 2022 T1A and T1B, with known class densities.

    python benchmarks/workloads.py            # make both and report how hard they are

Each class is a mixture of a few Gaussian clusters in a low-dimensional signal space, observed
through 300 correlated features, so that a linear classifier is decent but not quite right, as
with text embeddings. Training and pool share the class densities; only prevalences shift.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from headcount import Bags, UniformPrevalence

CACHE = Path(__file__).parent / ".cache"
FEATURES = 300
CLUSTERS = 4


@dataclass(frozen=True)
class Spec:
    """Size and difficulty of a workload."""

    n_classes: int
    n_train: int
    n_pool: int
    bag_size: int
    signal: int  # dimensions that carry the classes
    between: float  # distance of class centres from zero
    within: float  # distance of a class's clusters from its centre
    seed: int


SPECS = {
    "T1A": Spec(2, 5_000, 60_000, 250, 40, 1.3, 1.0, 1),
    "T1B": Spec(28, 20_000, 120_000, 1_000, 60, 1.5, 1.25, 2),
}
N_BAGS = 5_000


def natural_prevalence(spec: Spec, rng: np.random.Generator) -> np.ndarray:
    """4 : 1 for two classes, else a shuffled power law."""
    share = (
        np.array([4.0, 1.0])
        if spec.n_classes == 2
        else rng.permutation((1.0 + np.arange(spec.n_classes)) ** -0.9)
    )
    return share / share.sum()


class Model:
    """Class densities of a workload: clusters, their weights and the shared noise."""

    def __init__(self, spec: Spec, rng: np.random.Generator):
        k, d = spec.n_classes, spec.signal
        families = rng.normal(size=(max(1, k // 4), d))  # related classes lie closer together
        centres = rng.normal(size=(k, d)) + 0.6 * families[rng.permutation(k) % len(families)]
        offsets = rng.normal(size=(k, CLUSTERS, d))
        self.signal = (spec.between * centres[:, None] + spec.within * offsets) / np.sqrt(d)
        self.weights = rng.dirichlet(np.full(CLUSTERS, 3.0), k)
        self.directions = np.linalg.qr(rng.normal(size=(FEATURES, d)))[0]
        self.rotation = np.linalg.qr(rng.normal(size=(FEATURES, FEATURES)))[0]
        self.spread = np.sqrt(0.4 + 1.6 * np.exp(-np.arange(FEATURES) / 60))

    def densities(self, X: np.ndarray) -> np.ndarray:
        """Density of every class at the items, up to a factor an item."""
        whiten = self.rotation / self.spread
        points = X.astype(float) @ whiten
        k, n, d = self.signal.shape
        centres = (self.signal.reshape(k * n, d) @ self.directions.T) @ whiten
        power = points @ centres.T - 0.5 * (centres**2).sum(axis=1) + np.log(self.weights.ravel())
        power -= power.max(axis=1, keepdims=True)
        return np.exp(power).reshape(len(X), k, n).sum(axis=2)

    def draw(self, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw features for items of the given classes."""
        ladder = self.weights.cumsum(axis=1)[y]
        cluster = np.minimum((rng.random((len(y), 1)) > ladder).sum(axis=1), CLUSTERS - 1)
        noise = (rng.normal(size=(len(y), FEATURES)) * self.spread) @ self.rotation.T
        return (self.signal[y, cluster] @ self.directions.T + noise).astype(np.float32)


def make(task: str) -> dict[str, np.ndarray]:
    """Training and pool items of a workload, standardised; from the cache if it is there."""
    path = CACHE / f"{task}.npz"
    if path.exists():
        return dict(np.load(path))
    spec = SPECS[task]
    rng = np.random.default_rng(spec.seed)
    share, model = natural_prevalence(spec, rng), Model(spec, rng)
    data = {}
    for name, n in (("train", spec.n_train), ("pool", spec.n_pool)):
        data[f"y_{name}"] = rng.choice(spec.n_classes, n, p=share)
        data[f"X_{name}"] = model.draw(data[f"y_{name}"], rng)
    mean, sd = data["X_train"].mean(axis=0), data["X_train"].std(axis=0)
    for name in ("train", "pool"):
        data[f"X_{name}"] = (data[f"X_{name}"] - mean) / sd
    CACHE.mkdir(exist_ok=True)
    np.savez(path, **data)
    return data


def densities(task: str) -> np.ndarray:
    """True class densities of the pool's items, which are drawn again for it."""
    path = CACHE / f"{task}-densities.npy"
    if not path.exists():
        spec = SPECS[task]
        rng = np.random.default_rng(spec.seed)
        share, model = natural_prevalence(spec, rng), Model(spec, rng)
        for n in (spec.n_train, spec.n_pool):
            y = rng.choice(spec.n_classes, n, p=share)
            X = model.draw(y, rng)
        if not np.array_equal(y, make(task)["y_pool"]):
            raise RuntimeError("the pool could not be drawn again: remove the cache.")
        np.save(path, model.densities(X))
    return np.load(path)


def scores(task: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, Bags]:
    """Held-out training posteriors, training labels, pool posteriors and bags of a workload."""
    from sklearn.linear_model import LogisticRegression

    from headcount.scores import cross_fit

    spec, data = SPECS[task], make(task)
    path = CACHE / f"{task}-scores.npz"
    if not path.exists():
        classifier = LogisticRegression(max_iter=1000)
        given = data["X_train"], data["y_train"]
        scorer = cross_fit(classifier, *given, whole=True, random_state=0)
        pool = scorer.views(data["X_pool"], whole=True)[0]
        np.savez(path, train=scorer.scores, pool=pool)
    saved = np.load(path)
    protocol = UniformPrevalence(n_bags=N_BAGS, size=spec.bag_size, random_state=spec.seed)
    return saved["train"], data["y_train"], saved["pool"], protocol.draw(data["y_pool"])


def main() -> None:
    """Report the accuracy of the workloads' classifier."""
    for task, spec in SPECS.items():
        _, _, pool, bags = scores(task)
        y_pool = make(task)["y_pool"]
        hit = pool.argmax(axis=1) == y_pool
        balanced = np.mean([hit[y_pool == c].mean() for c in range(spec.n_classes)])
        print(f"{task}: accuracy {hit.mean():.3f}, balanced {balanced:.3f}, {bags}")


if __name__ == "__main__":
    main()
