"""Networks as quantifiers: what they learn from, that they learn, and that they can be kept."""

import itertools
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from scipy import sparse  # noqa: E402
from sklearn.base import clone  # noqa: E402
from sklearn.linear_model import LogisticRegression, RidgeClassifier  # noqa: E402

from headcount import (  # noqa: E402
    Bags,
    UniformPrevalence,
    WithIntervals,
    load,
    measure,
    neural,
    save,
)
from headcount.exceptions import HeadcountError, InputError, UnreliableWarning  # noqa: E402
from headcount.neural import (  # noqa: E402
    DANN,
    IWDAN,
    DeepSets,
    GMNet,
    HistNetQ,
    QuaNet,
    Sampling,
    SetTransformer,
    Training,
    checkpoints,
    estimating,
    training,
)
from headcount.systems import lequa2022  # noqa: E402
from headcount.testing import check_quantifier  # noqa: E402
from headcount.testing.quantifiers import make_items  # noqa: E402

# Two epochs are too few to learn anything, and the networks say so.
pytestmark = pytest.mark.filterwarnings("ignore::headcount.exceptions.UnreliableWarning")
QUICK = Training(epochs=2, pretrain=1, n_threads=1)
FEW = Sampling(bag_size=20, bags_per_epoch=20, validation_bags=10)
SMALL = {"training": QUICK, "sampling": FEW}
NETWORKS = {
    "HistNetQ": HistNetQ(features=(6,), n_bins=4, head=(8,), **SMALL),
    "DeepSets": DeepSets(features=(6,), head=(8,), **SMALL),
    "SetTransformer": SetTransformer(features=(6,), width=8, n_heads=2, n_points=3, out=4, **SMALL),
    "GMNet": GMNet(n_branches=2, hidden=6, dimension=3, n_gaussians=4, head=(8,), **SMALL),
    "QuaNet": QuaNet(hidden=4, head=(8,), **SMALL),
    "UniOviedo1": lequa2022.uni_oviedo1(n_bins=4, head=(8,), **SMALL),
}


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("name", NETWORKS)
def test_networks_keep_the_contract(name, k):
    check_quantifier(clone(NETWORKS[name]), n_classes=k)


@pytest.mark.parametrize("kind", [IWDAN, DANN])
def test_adversarial_networks_keep_the_contract(kind):
    check_quantifier(kind(features=(4,), discriminator=(4,), epochs=1, n_threads=1), n_classes=3)


@pytest.fixture(scope="module")
def problem():
    """Labelled items; a pool with bags whose shares are known; another pool with bags to test."""
    X, y = make_items(2, n=1500, seed=0)
    parts = []
    for seed, n_bags in ((1, 150), (2, 100)):
        pool, y_pool = make_items(2, n=3000, seed=seed)
        protocol = UniformPrevalence(n_bags=n_bags, size=60, random_state=seed)
        parts.append((pool, protocol.draw(y_pool)))
    return X, y, *parts


def error(q, pool, bags):
    return measure("ae")(bags.prevalence, q.predict_bags(pool, bags)).mean()


def learner(**options):
    return HistNetQ(
        features=(16, 8),
        n_bins=8,
        head=(32,),
        dropout=0.1,
        loss="ae",
        sampling=Sampling(bag_size=60, bags_per_epoch=200, validation_bags=60),
        training=Training(epochs=12, learning_rate=3e-3, n_threads=1, pretrain=20, head_first=6),
        **options,
    )


def test_a_network_learns_from_items_from_bags_and_from_both(problem):
    """The mean share is off by a quarter on average; shares without knowledge by about .25."""
    X, y, (pool, known), (test, bags) = problem
    plain = np.full_like(bags.prevalence, 0.5)
    baseline = measure("ae")(bags.prevalence, plain).mean()
    assert error(learner().fit(X, y), test, bags) < baseline / 3
    assert error(learner().fit_bags(pool, known), test, bags) < baseline / 3
    assert error(learner().fit(X, y, bags=known, pool=pool), test, bags) < baseline / 3


def test_fit_bags_takes_its_classes_from_the_bags(problem):
    _, _, (pool, known), _ = problem
    turned = Bags(
        known.indptr,
        known.indices,
        known.n_items,
        prevalence=known.prevalence[:, ::-1],
        classes=np.array(["yes", "no"]),
    )
    q = clone(NETWORKS["HistNetQ"]).fit_bags(pool, turned)
    assert q.classes_.tolist() == ["no", "yes"]
    same = clone(NETWORKS["HistNetQ"]).fit_bags(pool, known)
    np.testing.assert_array_equal(q.predict(pool), same.predict(pool))


def test_what_cannot_be_learnt_from_is_refused(problem):
    X, y, (pool, known), _ = problem
    q = clone(NETWORKS["HistNetQ"])
    blind = Bags(known.indptr, known.indices, known.n_items)
    with pytest.raises(InputError, match="no known prevalences"):
        q.fit_bags(pool, blind)
    with pytest.raises(InputError, match="without bags"):
        q.fit(X, y, pool=pool)
    with pytest.raises(InputError, match="same classes"):
        q.fit(X, np.where(y == 0, "no", "yes"), bags=known, pool=pool)
    with pytest.raises(InputError, match="pool has"):
        q.fit(X, y, bags=known, pool=pool[:-1])
    with pytest.raises(InputError, match="one labelled item"):
        q.fit(X, np.where(np.arange(len(y)) == 5, 7, y))
    with pytest.raises(InputError, match="1 bags cannot be split"):
        q.fit_bags(pool, known[:1])
    with pytest.raises(InputError, match="labelled items"):
        clone(NETWORKS["QuaNet"]).fit_bags(pool, known)
    with pytest.raises(InputError, match="no predict_proba"):
        clone(NETWORKS["QuaNet"]).set_params(classifier=RidgeClassifier()).fit(X, y)
    for wrong in ({"loss": "raee"}, {"n_bins": 1}, {"histogram": "soft"}, {"dropout": 1.5}):
        with pytest.raises(InputError):
            clone(q).set_params(**wrong).fit(X, y)
    if torch.cuda.is_available():
        return
    with pytest.raises(InputError, match="no GPU"):
        clone(q).set_params(training__device="cuda").fit(X, y)


def test_a_fit_leaves_no_trace_on_torch(problem):
    X, y, *_ = problem
    torch.manual_seed(5)
    before = torch.random.get_rng_state(), torch.get_num_threads()
    q = clone(NETWORKS["DeepSets"]).set_params(training__n_threads=2).fit(X, y)
    q.predict(X)
    assert torch.equal(torch.random.get_rng_state(), before[0])
    assert torch.get_num_threads() == before[1]


@pytest.mark.parametrize("name", NETWORKS)
def test_a_fit_that_was_stopped_goes_on_to_the_same_weights(name, problem, tmp_path, monkeypatch):
    X, y, *_ = problem
    q = clone(NETWORKS[name]).set_params(training__epochs=4)
    whole = clone(q).fit(X, y)
    kept = clone(q).set_params(training__checkpoint=tmp_path)
    original, calls = checkpoints.write, []

    def stopped(*args):
        original(*args)
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(checkpoints, "write", stopped)
    with pytest.raises(KeyboardInterrupt):
        kept.fit(X, y)
    monkeypatch.setattr(checkpoints, "write", original)
    with pytest.raises(InputError, match="other data or settings"):
        clone(kept).fit(X, 1 - y)
    again = clone(kept).fit(X, y)
    assert again.history_ == whole.history_
    np.testing.assert_array_equal(again.weights_, whole.weights_)
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_checkpoint_is_named(problem, tmp_path):
    X, y, *_ = problem
    (tmp_path / checkpoints.NAME).write_bytes(b"nothing")
    with pytest.raises(InputError, match="damaged"):
        clone(NETWORKS["DeepSets"]).set_params(training__checkpoint=tmp_path).fit(X, y)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_model_file_holds_weights_as_data(name, problem, tmp_path):
    X, y, _, (test, bags) = problem
    q = clone(NETWORKS[name]).fit(X, y)
    save(q, tmp_path / "net.hc")
    again = load(tmp_path / "net.hc")
    np.testing.assert_array_equal(again.predict_bags(test, bags), q.predict_bags(test, bags))
    assert q.weights_[:200].tobytes().find(b'{"') == 8  # the header of a safetensors file
    changed = load(tmp_path / "net.hc").set_params(head=(5, 5))
    with pytest.raises(InputError, match="changed after the"):
        changed.predict(test)


def test_chunks_and_forgotten_features_give_the_same_answers(problem, monkeypatch):
    X, y, _, (test, bags) = problem
    q = clone(NETWORKS["GMNet"]).fit(X, y)
    want = q.predict_bags(test, bags)
    monkeypatch.setattr(estimating, "ITEMS_PER_POOLING", 130)
    np.testing.assert_allclose(q.predict_bags(test, bags), want, atol=1e-6)
    monkeypatch.setattr(estimating, "KEPT_FEATURES", 0)
    np.testing.assert_allclose(q.predict_bags(test, bags), want, atol=1e-6)


def test_training_stops_by_time_and_by_learning_rate(problem):
    X, y, *_ = problem
    short = clone(NETWORKS["DeepSets"]).set_params(training__time_limit=0, training__epochs=50)
    assert len(short.fit(X, y).history_) == 1
    falling = Training(epochs=500, patience=1, learning_rate=1e-9, end_learning_rate=4e-10)
    done = clone(NETWORKS["DeepSets"]).set_params(training=falling).fit(X, y)
    assert len(done.history_) < 500


def test_the_head_learns_first_while_the_features_stay(problem, monkeypatch):
    X, y, *_ = problem
    q = clone(NETWORKS["DeepSets"]).set_params(training__head_first=2)
    monkeypatch.setattr(training, "mean_error", lambda *_: -next(better))  # so that the last stay
    better = itertools.count()

    def weights(epochs, part):
        net = clone(q).set_params(training__epochs=epochs).fit(X, y).fitted_network()
        return torch.cat([p.detach().flatten() for p in getattr(net, part).parameters()])

    assert torch.equal(weights(1, "features"), weights(2, "features"))
    assert not torch.equal(weights(1, "head"), weights(2, "head"))
    assert not torch.equal(weights(1, "features"), weights(4, "features"))


def test_a_training_that_failed_is_named(problem):
    X, y, *_ = problem
    with pytest.raises(InputError, match="end_learning_rate must be between"):
        clone(NETWORKS["DeepSets"]).set_params(training__learning_rate=1e-6).fit(X, y)
    noise = np.random.default_rng(0).permutation(y)  # labels that no item knows of
    with pytest.warns(UnreliableWarning, match="has learnt nothing"):
        clone(NETWORKS["DeepSets"]).set_params(loss="se").fit(X, noise)
    wild = clone(NETWORKS["DeepSets"]).set_params(training__learning_rate=1e30)
    with pytest.raises(HeadcountError, match="diverged"):
        wild.fit(X, y)


def test_progress_tells_the_held_out_error(problem, capsys):
    X, y, *_ = problem
    clone(NETWORKS["DeepSets"]).set_params(training__verbose=True).fit(X, y)
    assert "held-out rae" in capsys.readouterr().err


def test_intervals_come_through_with_intervals(problem):
    X, y, _, (test, bags) = problem
    q = WithIntervals(clone(NETWORKS["DeepSets"]), cv=2, n_bags=100).fit(X, y)
    found = q.predict_interval(test, bags[:5])
    assert (found.low <= found.prevalence).all() and (found.prevalence <= found.high).all()


def test_quanet_is_told_what_the_five_methods_say(problem):
    X, y, (pool, known), (test, bags) = problem
    q = clone(NETWORKS["QuaNet"]).set_params(classifier=LogisticRegression(C=0.1))
    q.fit(X, y, bags=known, pool=pool)
    assert [type(m).__name__ for m in q.statistics_] == ["CC", "ACC", "PCC", "PACC", "SLD"]
    assert q.classifier_.C == 0.1
    scores = q.classifier_.predict_proba(test)
    want = np.hstack([m.predict_scores(scores, bags) for m in q.statistics_])
    seen = {}
    original = q.fitted_network().estimate

    def spying(features, sizes, told, rows):
        seen["told"] = told.numpy()
        return original(features, sizes, told, rows)

    q._network.estimate = spying
    q.predict_bags(test, bags)
    np.testing.assert_allclose(seen["told"], want, atol=1e-6)


def test_quanet_ignores_the_order_of_items(problem):
    X, y, _, (test, _) = problem
    for labels in (y, np.where(X[:, 2] > 1, 2, y)):
        q = clone(NETWORKS["QuaNet"]).fit(X, labels)
        np.testing.assert_allclose(q.predict(test[::-1]), q.predict(test), atol=1e-6)


def test_quanet_takes_an_embedding(problem):
    from sklearn.decomposition import PCA

    X, y, *_ = problem
    q = clone(NETWORKS["QuaNet"]).set_params(embedding=PCA(2)).fit(X, y)
    assert len(q.scaling_[0]) == 2 + 2  # components and posteriors
    q = clone(NETWORKS["QuaNet"]).set_params(embedding=3).fit(sparse.csr_array(X), y)
    assert q.embedding_.n_components == 3
    assert q.predict(X).sum() == pytest.approx(1)


def test_without_torch_the_import_says_what_to_install():
    code = "import sys; sys.modules['torch'] = None\nimport headcount.neural"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert "pip install 'headcount[torch]'" in done.stderr


def test_the_page_of_the_networks_runs_and_names_them_all():
    root = Path(__file__).parent.parent.parent / "docs"
    page, chooser = ((root / name).read_text() for name in ("neural.md", "methods.md"))
    for block in re.findall(r"```python\n(.*?)```", page, re.S):
        exec(compile(block, "neural.md", "exec"), {})
    for name in set(neural.__all__) - {"NetworkQuantifier", "Sampling", "Training"}:
        assert f"`{name}`" in page and f"`{name}`" in chooser, name
