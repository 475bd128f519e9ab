"""The adversarial networks: class weights, the transpose, and made problems of shift."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from scipy import sparse  # noqa: E402
from scipy.optimize import minimize  # noqa: E402
from sklearn.decomposition import TruncatedSVD  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402

from headcount import BBSE, Bags  # noqa: E402
from headcount.neural import DANN, IWDAN, iwdan  # noqa: E402
from headcount.neural.adversarial import class_weights, reverse_gradient  # noqa: E402


def made(seed, shares, n, move=0.0, gap=3.0):
    """Two classes apart in one direction, and less so in another, which moves."""
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], np.round(np.array(shares) * n).astype(int))
    X = rng.normal(size=(n, 2))
    X[:, 0] += gap * (y - 0.5)
    X[:, 1] += (y - 0.5) + move
    return X, y


def confusion(seed=0, k=3):
    """Answers of a classifier that errs to one side, so that C is far from symmetric."""
    rng = np.random.default_rng(seed)
    columns = rng.dirichlet(np.array([6.0, 1.0, 0.5]), size=k).T
    columns[:, 1] = [0.5, 0.45, 0.05]
    columns[:, 2] = [0.3, 0.1, 0.6]
    prior = np.array([0.5, 0.3, 0.2])
    return columns * prior, prior


def test_class_weights_recover_the_target_and_the_transposed_program_does_not():
    """The authors' code multiplies C mu where the minimum needs C' mu."""
    C, prior = confusion()
    shares = np.array([0.2, 0.2, 0.6])
    mu = C @ (shares / prior)
    np.testing.assert_allclose(class_weights(C, mu, prior) * prior, shares, atol=1e-4)

    def solve(linear):
        found = minimize(
            lambda w: 0.5 * w @ (C.T @ C) @ w - linear @ w,
            np.ones(3),
            bounds=[(0, None)] * 3,
            constraints={"type": "eq", "fun": lambda w: w @ prior - 1},
            tol=1e-12,
        )
        return found.x * prior

    np.testing.assert_allclose(solve(C.T @ mu), shares, atol=1e-3)
    assert np.abs(solve(C @ mu) - shares).max() > 0.1


def test_class_weights_are_the_minimum_of_the_program():
    rng = np.random.default_rng(1)
    C, prior = confusion(2)
    for _ in range(5):
        mu = rng.dirichlet(np.ones(3))  # which no weights explain exactly
        best = class_weights(C, mu, prior)
        assert best.min() >= 0 and best @ prior == pytest.approx(1)
        lowest = np.sum((C @ best - mu) ** 2)
        for other in rng.dirichlet(np.ones(3), size=300) / prior:
            assert lowest <= np.sum((C @ other - mu) ** 2) + 1e-5


def test_the_reversed_gradient_is_the_opposite():
    x = torch.tensor([1.0, -2.0], requires_grad=True)
    y = reverse_gradient(x, 3.0)
    (y**2).sum().backward()
    assert y.tolist() == [1.0, -2.0]
    assert x.grad.tolist() == [-6.0, 12.0]


def test_shares_are_recovered_when_only_they_have_changed():
    X, y = made(0, [0.5, 0.5], 1500, gap=4.0)
    net = IWDAN(epochs=30, n_threads=1).fit(X, y)
    for share in (0.2, 0.8):
        target, _ = made(int(10 * share), [1 - share, share], 1500, gap=4.0)
        assert net.fit_target(target).prevalence_[1] == pytest.approx(share, abs=0.03)
        np.testing.assert_allclose(net.class_weights_ @ [0.5, 0.5], 1, atol=1e-6)


def test_moved_classes_are_counted_better_than_by_bbse():
    """On the mean over three bags; the classes move by 2 in the second direction."""
    off = []
    for seed in range(3):
        X, y = made(seed, [0.5, 0.5], 1000)
        target, _ = made(seed + 50, [0.3, 0.7], 1000, move=2.0)
        bbse = BBSE(LogisticRegression()).fit(X, y).predict(target)[1]
        iw = IWDAN(n_threads=1, random_state=seed).fit(X, y).predict(target)[1]
        off.append([abs(bbse - 0.7), abs(iw - 0.7)])
    bbse, iw = np.mean(off, axis=0)
    assert iw < 0.8 * bbse


def test_the_plain_network_does_not_follow_the_shares():
    """Where the shares have changed, features that look alike in both are the wrong aim."""
    X, y = made(0, [0.5, 0.5], 1000)
    target, _ = made(1, [0.1, 0.9], 1000)
    options = {"epochs": 30, "n_threads": 1}
    weighted = IWDAN(**options).fit(X, y).predict(target)[1]
    plain = DANN(**options).fit(X, y).predict(target)[1]
    assert abs(weighted - 0.9) < abs(plain - 0.9)


def test_answers_are_kept_and_not_made_again(tmp_path, monkeypatch):
    X, y = made(0, [0.5, 0.5], 200)
    bags = Bags.from_lists([np.arange(50), np.arange(100, 200), np.arange(120)], 200)
    options = {"epochs": 2, "features": (4,), "n_threads": 1}
    want = IWDAN(**options).fit(X, y).predict_bags(X, bags)
    net = IWDAN(**options, checkpoint=tmp_path).fit(X, y)
    original, calls = iwdan.adapt, []

    def stopped(*args):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(*args)

    monkeypatch.setattr(iwdan, "adapt", stopped)
    with pytest.raises(KeyboardInterrupt):
        net.predict_bags(X, bags)
    np.testing.assert_array_equal(net.predict_bags(X, bags), want)
    assert len(calls) == 4  # two before the stop, the one that was stopped, and that one again


def test_a_bag_is_the_same_in_any_order():
    X, y = made(0, [0.5, 0.5], 200)
    net = IWDAN(epochs=2, features=(4,), n_threads=1).fit(X, y)
    np.testing.assert_array_equal(net.predict(X[:60]), net.predict(X[59::-1]))


def test_wide_sparse_items_are_reduced_as_by_hand(rng):
    y = np.repeat([0, 1], 60)
    X = sparse.csr_matrix((rng.random((120, 40)) < 0.1) + 2.0 * (np.arange(40) < 5) * y[:, None])
    bags = Bags.from_lists([np.arange(40), np.arange(50, 110)], 120)
    options = {"epochs": 5, "n_threads": 1, "random_state": 3}
    found = IWDAN(components=8, **options).fit(X, y).predict_bags(X, bags)
    reduced = TruncatedSVD(8, random_state=3).fit(X.astype(np.float32))
    dense = reduced.transform(X.astype(np.float32)).astype(np.float32)
    want = IWDAN(**options).fit(dense, y).predict_bags(dense, bags)
    np.testing.assert_allclose(found, want, atol=1e-6)
