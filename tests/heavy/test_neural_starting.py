"""What networks start from, and that they are no worse than it."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sklearn.linear_model import LogisticRegression  # noqa: E402

from headcount import CC, UniformPrevalence, measure  # noqa: E402
from headcount.exceptions import UnreliableWarning  # noqa: E402
from headcount.neural import (  # noqa: E402
    DeepSets,
    GMNet,
    HistNetQ,
    QuaNet,
    Sampling,
    SetTransformer,
    Training,
    training,
)
from headcount.neural.starting import Classifying, CorrectedCount, OneAnswer  # noqa: E402
from headcount.testing.quantifiers import make_items  # noqa: E402

K = 6
FEW = Sampling(bag_size=100, bags_per_epoch=100, validation_bags=50)
SMALL = {
    "HistNetQ": HistNetQ(features=(32, 16), n_bins=8, head=(32,)),
    "DeepSets": DeepSets(features=(32, 16), head=(32,)),
    "SetTransformer": SetTransformer(features=(32,), width=16, n_heads=2, n_points=4, out=8),
    "GMNet": GMNet(n_branches=3, hidden=16, n_gaussians=20, head=(32,)),
}


@pytest.fixture(scope="module")
def problem():
    """Labelled items of several classes with unequal shares, and bags of others."""
    rng = np.random.default_rng(0)
    centres = 1.2 * rng.normal(size=(K, 8))
    shares = np.arange(1, K + 1) / (K * (K + 1) / 2)

    def draw(n):
        y = rng.choice(K, n, p=shares)
        return (centres[y] + rng.normal(size=(n, 8))).astype(np.float32), y

    (X, y), (pool, y_pool) = draw(2500), draw(6000)
    return X, y, pool, UniformPrevalence(n_bags=100, size=100, random_state=1).draw(y_pool)


def errors(bags, answers):
    rae = measure("rae")(bags.prevalence, answers, sizes=bags.sizes).mean()
    return np.array([measure("ae")(bags.prevalence, answers).mean(), rae])


def test_counts_are_corrected_by_the_least_squares_map():
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.ones(4), size=300)
    confusion = 0.6 * np.eye(4) + 0.1
    start = CorrectedCount(4)
    start.fit(torch.from_numpy(shares @ confusion), torch.from_numpy(shares))
    found = start(torch.from_numpy((shares @ confusion).astype(np.float32))).exp().detach()
    np.testing.assert_allclose(found.numpy(), shares, atol=0.005)  # less a little ridge
    beyond = start(torch.tensor([[1.0, 0, 0, 0]])).exp().detach().numpy()[0]
    assert (beyond > 0).all() and beyond[1:].max() < 0.02  # bent where it would be negative


def test_one_answer_of_several_is_handed_on():
    answers = torch.tensor([[0.1, 0.9, 0.5, 0.5, 1.0, 0.0]])
    for which, want in enumerate([[0.1, 0.9], [0.5, 0.5], [1.0, 0.0]]):
        found = OneAnswer(3, 2, which)(answers).softmax(1)
        np.testing.assert_allclose(found, [want], atol=2e-4)


def test_posteriors_stand_beside_the_features():
    module = Classifying(torch.nn.Linear(3, 5), 5, 2)
    items = torch.randn(4, 3)
    seen = module(items)
    torch.testing.assert_close(seen[:, :5], module.inner(items))
    torch.testing.assert_close(seen[:, 5:], module.logits(items).softmax(1))


@pytest.mark.parametrize("name", SMALL)
def test_networks_beat_counting_after_two_short_epochs(name, problem):
    X, y, pool, bags = problem
    q = SMALL[name].set_params(sampling=FEW)
    q.training = Training(epochs=2, learning_rate=3e-4, pretrain=30, head_first=1, n_threads=1)
    found = errors(bags, q.fit(X, y).predict_bags(pool, bags))
    counted = CC(LogisticRegression(), cv=None).fit(X, y).predict_bags(pool, bags)
    assert (found < 0.8 * errors(bags, counted)).all()


def test_without_items_to_classify_it_is_the_published_network(problem):
    X, y, *_ = problem
    plain = DeepSets(features=(8,), head=(8,), sampling=FEW)
    plain.training = Training(epochs=1, n_threads=1)
    published = QuaNet(hidden=4, head=(8,), residual=False, sampling=FEW, training=plain.training)
    for q in (plain, published):
        with pytest.warns(UnreliableWarning, match="learnt nothing"):  # one epoch is too few
            assert q.fit(X, y).fitted_network().start is None


def test_quanet_is_not_worse_than_the_best_method_that_it_is_told(problem):
    X, y, pool, bags = problem
    how = Training(epochs=3, weight_decay=0.0, batch_size=10, n_threads=1)
    q = QuaNet(hidden=8, head=(32,), sampling=FEW, training=how).fit(X, y)
    scores = q.classifier_.predict_proba(pool)
    told = [errors(bags, m.predict_scores(scores, bags)) for m in q.statistics_]
    assert (errors(bags, q.predict_bags(pool, bags)) < 1.1 * np.min(told, axis=0)).all()


def test_what_it_started_from_is_kept_where_training_makes_it_worse(problem, monkeypatch):
    X, y, pool, bags = problem
    how = Training(epochs=2, learning_rate=1.0, batch_size=10, n_threads=1)
    q = QuaNet(hidden=4, head=(8,), sampling=FEW, training=how)
    monkeypatch.setattr(training._Run, "_error", _worse_and_worse(training._Run._error))
    q.fit(X, y)
    method = q.statistics_[q.best_]
    want = method.predict_scores(q.classifier_.predict_proba(pool), bags)
    np.testing.assert_allclose(q.predict_bags(pool, bags), want, atol=1e-3)


def _worse_and_worse(error):
    """Errors of a training that only does harm."""

    def told(run, answers):
        moved = bool((run.network.head[-1].weight != 0).any())
        return error(run, answers) + 10 * moved

    return told


def test_classes_of_one_or_two_items_can_be_learnt_from():
    X, y = make_items(2, n=200, seed=0)
    X, y = np.vstack([X, X[:2] + 5]), np.append(y, [2, 2])
    q = DeepSets(features=(8,), head=(8,), sampling=FEW)
    q.training = Training(epochs=1, pretrain=2, n_threads=1)
    assert q.fit(X, y).predict(X).shape == (3,)
