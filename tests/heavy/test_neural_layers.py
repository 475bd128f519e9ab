"""Layers of the networks against plain loops, and their gradients against finite differences."""

from functools import partial

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from scipy.special import expit  # noqa: E402
from torch.autograd import gradcheck  # noqa: E402

from headcount import measure  # noqa: E402
from headcount.neural.attention import SetAttention  # noqa: E402
from headcount.neural.frame import BagNetwork, mlp  # noqa: E402
from headcount.neural.gaussians import (  # noqa: E402
    Branches,
    GaussianMixture,
    UnlikeBranches,
    mean_cka,
)
from headcount.neural.histograms import KINDS, Histogram, _Binned, _HardOnCPU  # noqa: E402
from headcount.neural.losses import KERNELS, bag_errors  # noqa: E402
from headcount.neural.pooling import Statistic  # noqa: E402
from headcount.neural.recurrent import Recurrent, read, reading_steps  # noqa: E402

SIZES = [np.array([4, 4, 4]), np.array([1, 7, 4])]


def made(n=12, d=3, seed=0):
    torch.manual_seed(seed)
    return torch.rand(n, d, dtype=torch.float64)


def bag_rows(values, sizes):
    return np.split(values.detach().numpy(), np.cumsum(sizes)[:-1])


def bin_value(kind, v, centre, half, n_bins):
    d = v - centre
    if kind == "count":
        return float(-half <= d < half)
    if kind == "hard":
        power = 1.01 ** (half - abs(d))
        return power if power > 1 else 0.0
    if kind == "sigmoid":
        return expit(1000 * (d + half)) - expit(1000 * (d - half))
    if kind == "triangle":
        return max(0.0, 1 - 2 * n_bins * abs(d))
    return np.exp(-((2 * n_bins * d) ** 2))


@pytest.mark.parametrize("sizes", SIZES, ids=["one size", "sizes differ"])
@pytest.mark.parametrize("kind", KINDS)
def test_histograms_are_those_of_a_loop(kind, sizes):
    layer, values = Histogram(3, 5, kind).double(), made()
    got = layer(values, sizes).detach().numpy().reshape(3, 3, 5)
    centres, halves = layer.centres.detach().numpy(), layer.halves.detach().numpy()
    for s, rows in enumerate(bag_rows(values, sizes)):
        for f in range(3):
            for b in range(5):
                want = np.mean(
                    [bin_value(kind, v, centres[f, b], halves[f, b], 5) for v in rows[:, f]]
                )
                assert got[s, f, b] == pytest.approx(want, abs=1e-6)


@pytest.mark.parametrize("sizes", SIZES, ids=["one size", "sizes differ"])
@pytest.mark.parametrize("kind", ["hard", "sigmoid", "triangle", "rbf"])
def test_gradients_of_histograms_are_finite_differences(kind, sizes):
    layer = Histogram(3, 4, kind).double()
    values = made(seed=1).requires_grad_()
    if kind == "hard":
        inputs = (values, layer.centres, layer.halves)
        for function in (_HardOnCPU, _Binned):
            rest = (sizes,) if function is _HardOnCPU else (sizes, kind)
            pool = partial(_applied, function, rest)
            assert gradcheck(pool, inputs, eps=1e-7, atol=1e-6)
    else:
        assert gradcheck(lambda v: layer(v, sizes), (values,), eps=1e-7, atol=1e-4)


def _applied(function, rest, *tensors):
    return function.apply(*tensors, *rest)


@pytest.mark.parametrize("sizes", SIZES, ids=["one size", "sizes differ"])
def test_compiled_hard_histogram_is_that_of_any_device(sizes):
    torch.manual_seed(3)
    layer = Histogram(3, 6).double()
    layer.centres.data += 0.3 * torch.randn(3, 6, dtype=torch.float64)  # anywhere, after training
    layer.halves.data *= 1 + torch.rand(3, 6, dtype=torch.float64)
    weight = torch.randn(3, 18, dtype=torch.float64)
    found = []
    for pool in (
        lambda v: layer(v, sizes),
        lambda v: _Binned.apply(v, layer.centres, layer.halves, sizes, "hard").flatten(1),
    ):
        values = made(seed=4).requires_grad_()
        layer.zero_grad()
        out = pool(values)
        (out * weight).sum().backward()
        found.append([out, values.grad, layer.centres.grad.clone(), layer.halves.grad.clone()])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


def test_posteriors_through_a_count_histogram_are_the_class_histograms():
    """Features that are posteriors, a fixed head: exactly what numpy counts."""
    rng = np.random.default_rng(0)
    posteriors = rng.dirichlet(np.ones(3), size=40).astype(np.float32)
    posteriors[0] = [1, 0, 0]  # both ends of the range
    sizes = np.array([15, 25])
    scaling = np.zeros(3), np.ones(3)
    head = torch.nn.Identity()
    network = BagNetwork(scaling, torch.nn.Identity(), Histogram(3, 8, "count"), head).eval()
    pooled = network.pooling(network.describe(torch.from_numpy(posteriors)), sizes).numpy()
    for s, rows in enumerate(np.split(posteriors, [15])):
        want = [np.histogram(rows[:, c], bins=8, range=(0, 1))[0] / len(rows) for c in range(3)]
        np.testing.assert_array_equal(pooled[s], np.concatenate(want).astype(np.float32))


@pytest.mark.parametrize("sizes", SIZES, ids=["one size", "sizes differ"])
@pytest.mark.parametrize("kind", ["mean", "median", "max"])
def test_statistics_are_numpys(kind, sizes):
    values = made(seed=2)
    got = Statistic(kind, 3)(values, sizes).numpy()
    want = [getattr(np, kind)(rows, axis=0) for rows in bag_rows(values, sizes)]
    np.testing.assert_allclose(got, want)
    assert gradcheck(lambda v: Statistic(kind, 3)(v, sizes), (values.requires_grad_(),))


def test_gaussian_densities_are_scipys():
    from scipy.stats import multivariate_normal

    torch.manual_seed(0)
    layer = GaussianMixture(2, 3, 4).double().eval()
    layer.below.data = 0.5 * torch.randn_like(layer.below)
    values = made(10, 6)
    got = layer.likelihoods(values).detach().numpy().reshape(10, 2, 4)
    for branch in range(2):
        points = values[:, 3 * branch : 3 * branch + 3].numpy()
        for g in range(4):
            root = np.tril(layer.below[branch, g].detach().numpy(), -1)
            root += np.diag(np.exp(layer.log_diagonal[branch, g].detach().numpy()))
            normal = multivariate_normal(
                layer.centres[branch, g].detach().numpy(), np.linalg.inv(root @ root.T)
            )
            np.testing.assert_allclose(got[:, branch, g], normal.pdf(points), rtol=1e-6)
    assert gradcheck(layer.likelihoods, (values[:3].requires_grad_(),), atol=1e-4)


def test_cka_is_that_of_a_loop():
    blocks = made(3 * 7, 4).reshape(3, 7, 4)
    want = []
    for i in range(3):
        for j in range(3):
            if i != j:
                a, b = (blocks[x].numpy() - blocks[x].numpy().mean(axis=0) for x in (i, j))
                top = np.linalg.norm(a.T @ b) ** 2
                want.append(top / np.linalg.norm(a.T @ a) / np.linalg.norm(b.T @ b))
    assert float(mean_cka(blocks)) == pytest.approx(np.mean(want))
    assert float(UnlikeBranches(3, 4, 12, 0.0).penalty(blocks.reshape(7, 12))) == 0


@pytest.mark.parametrize("sizes", SIZES, ids=["one size", "sizes differ"])
def test_recurrence_is_torchs_own(sizes):
    """The same weights in torch's LSTM, a bag at a time."""
    torch.manual_seed(0)
    gates, pooling = torch.nn.Linear(3, 40).double(), Recurrent(5).double()
    own = torch.nn.LSTM(3, 5, batch_first=True, bidirectional=True).double()
    order = np.concatenate([np.arange(10), np.arange(15, 20), np.arange(10, 15)])  # i f g o
    for d, suffix in enumerate(["", "_reverse"]):
        block = slice(20 * d, 20 * d + 20)
        getattr(own, f"weight_ih_l0{suffix}").data = gates.weight.data[block][order]
        getattr(own, f"bias_ih_l0{suffix}").data = gates.bias.data[block][order]
        getattr(own, f"bias_hh_l0{suffix}").data.zero_()
        getattr(own, f"weight_hh_l0{suffix}").data = pooling.weight.data[d].T[order]
    values = made()
    got = pooling(gates(values), sizes)
    start = 0
    for s, size in enumerate(sizes):
        _, (last, _) = own(values[None, start : start + size])
        torch.testing.assert_close(got[s], last[:, 0].flatten())
        start += size


@pytest.mark.parametrize("sizes", SIZES, ids=["one size", "sizes differ"])
def test_the_derivative_of_the_lstm_is_that_of_finite_differences(sizes):
    """A row of features may serve several items, also of one bag."""
    pooling, features = Recurrent(2).double(), made(n=8, d=16).requires_grad_()
    rows = np.array([0, 1, 2, 3, 3, 5, 0, 7, 4, 4, 1, 6])

    def pooled(values, weight):
        return read(values, weight, *steps(sizes, rows))

    assert gradcheck(pooled, (features, pooling.weight.detach().requires_grad_()))
    plain = pooling(features[torch.as_tensor(rows)], sizes)
    torch.testing.assert_close(pooling.pool_rows(features, rows, sizes), plain)


@pytest.mark.parametrize("sizes", SIZES, ids=["one size", "sizes differ"])
def test_the_compiled_lstm_is_that_of_any_device(sizes):
    """Values and derivatives of 32-bit numbers, as those of 64 bits have them; large ones too."""
    rows = np.array([0, 1, 2, 3, 3, 5, 0, 7, 4, 4, 1, 6])
    features = (5 * made(n=8, d=16)).detach()
    pooling = Recurrent(2).double()
    found = []
    for dtype in (torch.float64, torch.float32):
        layer, values = pooling.to(dtype), features.to(dtype, copy=True).requires_grad_()
        layer.zero_grad()
        pooled = layer.pool_rows(values, rows, sizes)
        (pooled * torch.arange(1, 5)).sum().backward()
        found.append([t.double() for t in (pooled, values.grad, layer.weight.grad.clone())])
    for precise, compiled in zip(*found, strict=True):
        torch.testing.assert_close(compiled, precise, atol=2e-6, rtol=1e-5)
    with torch.no_grad():  # which keeps nothing of the steps
        again = layer.pool_rows(values, rows, sizes)
    torch.testing.assert_close(again.double(), found[1][0], atol=1e-6, rtol=0)
    values.data[3] = torch.nan  # which must not be hidden
    assert layer.pool_rows(values, rows, sizes).isnan().any()


def steps(sizes, rows):
    order, alive = reading_steps(sizes, rows)
    mask = None if alive is None else torch.as_tensor(alive).double()
    return torch.as_tensor(order), mask


def test_the_head_of_a_histogram_network_sees_shares_below_the_ends_of_bins():
    layer, values = Histogram(3, 5, "count").double(), made()
    seen = layer.view(layer(values, np.array([12]))).numpy().reshape(3, 5)
    want = [[(values[:, f] < (b + 1) / 5).double().mean() for b in range(5)] for f in range(3)]
    np.testing.assert_allclose(seen, want)


@pytest.mark.parametrize("loss", KERNELS)
def test_losses_are_the_measures(loss):
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.ones(4), 6), rng.dirichlet(np.ones(4), 6)
    sizes = np.array([10, 20, 50, 100, 7, 3])
    got = bag_errors(loss, torch.as_tensor(p), torch.as_tensor(q), sizes).numpy()
    np.testing.assert_allclose(got, measure(loss)(p, q, sizes=sizes))


def networks():
    torch.manual_seed(1)
    scaling = np.zeros(3), np.ones(3)
    poolings = {
        "hist": (mlp(3, (4,), 0.5)[0].append(torch.nn.Sigmoid()), Histogram(4, 5)),
        "mean": (mlp(3, (4,), 0.5)[0], Statistic("mean", 4)),
        "median": (mlp(3, (4,), 0.5)[0], Statistic("median", 4)),
        "max": (mlp(3, (4,), 0.5)[0], Statistic("max", 4)),
        "attention": (mlp(3, (4,), 0.5)[0], SetAttention(4, 2, 8, 2, 3, 5)),
        "gaussians": (
            torch.nn.Sequential(Branches(3, 2, 4, 3, 0.5), GaussianMixture(2, 3, 5)),
            UnlikeBranches(2, 5, 10, 0.1),
        ),
    }
    for name, (features, pooling) in poolings.items():
        head = torch.nn.Linear(pooling.width, 2)
        yield name, BagNetwork(scaling, features, pooling, head).double().eval()


@pytest.mark.parametrize(("name", "network"), list(networks()), ids=lambda v: str(v)[:12])
def test_networks_ignore_the_order_of_items_and_of_bags(name, network):
    values, sizes = made(), SIZES[1]
    whole = network.estimate(network.describe(values), sizes)[0].detach()
    rows = list(torch.split(values, sizes.tolist()))
    for s, bag in enumerate(rows):  # alone, and with its items turned round
        alone = network.estimate(network.describe(bag.flip(0)), sizes[s : s + 1])[0].detach()
        torch.testing.assert_close(alone[0], whole[s])
    turned = network.estimate(network.describe(torch.cat(rows[::-1])), sizes[::-1].copy())[0]
    torch.testing.assert_close(turned.detach().flip(0), whole)
