import numpy as np
import pytest
from scipy import stats

from headcount import CC, PCC, InputError, UniformPrevalence, evaluate_many
from headcount.inference import significance as sig
from headcount.testing.quantifiers import make_items

# Demsar (2006), Table 5a: critical values of the two-tailed Nemenyi test.
Q05 = {2: 1.960, 3: 2.343, 4: 2.569, 5: 2.728, 6: 2.850, 7: 2.949, 8: 3.031, 9: 3.102, 10: 3.164}
Q10 = {2: 1.645, 3: 2.052, 4: 2.291, 5: 2.459, 6: 2.589, 7: 2.693, 8: 2.780, 9: 2.855, 10: 2.920}


@pytest.mark.parametrize(("alpha", "table"), [(0.05, Q05), (0.10, Q10)])
def test_critical_distances_are_demsars(alpha, table):
    for k, q in table.items():
        expected = q * np.sqrt(k * (k + 1) / (6 * 14))
        assert sig.critical_distance(k, 14, alpha) == pytest.approx(expected, rel=6e-4)


def test_nemenyi_p_values_fit_the_critical_distance(rng):
    errors = rng.random((30, 5)) + np.arange(5) * 0.1
    result = sig.nemenyi(errors, list("abcde"))
    gaps = np.abs(result.ranks[:, None] - result.ranks)
    significant = result.p < 0.05
    np.testing.assert_array_equal(significant, gaps > result.critical_distance)
    assert result.friedman_p == pytest.approx(stats.friedmanchisquare(*errors.T).pvalue)
    np.testing.assert_allclose(result.ranks, stats.rankdata(errors, axis=1).mean(axis=0))


def test_groups_join_what_does_not_differ():
    result = sig.Nemenyi(list("abcd"), np.array([1.0, 1.5, 2.6, 4.0]), 0.0, 1.2, np.ones((4, 4)))
    assert result.groups() == [(0, 1), (1, 2)]


def test_marks_are_those_of_the_lequa_papers(rng):
    best = rng.random(200)
    same = best + 0.001 * rng.normal(size=200)
    gap = rng.normal(size=200)
    gap -= gap.mean()
    near = best + gap + 0.2 * gap.std() / np.sqrt(2)  # t about 2
    far = best + 1.0 + 0.01 * rng.normal(size=200)
    table = sig.against_best(
        np.column_stack([far, near, same, best - 0.0005]), ["far", "near", "same", "best"]
    )
    marks = dict(zip(table["method"].tolist(), table["mark"].tolist(), strict=True))
    assert marks["best"] == "best"
    assert marks["far"] == ""
    for name, p, m in zip(table["method"], table["p"], table["mark"], strict=True):
        if name != "best":
            assert m == ("‡" if p >= 0.05 else "†" if p > 0.001 else "")
    assert sig.paired_t(best, near) == pytest.approx(stats.ttest_rel(best, near).pvalue)
    assert [sig.mark(p) for p in (0.05, 0.0499, 0.0011, 0.001, 0.0)] == ["‡", "†", "†", "", ""]


def test_equal_and_shifted_series_need_no_test():
    a = np.array([0.1, 0.2, 0.3])
    assert sig.paired_t(a, a) == 1.0
    assert sig.paired_t(a, a + 0.25) < 1e-9


def test_wilcoxon_is_scipys_and_holm_is_stepwise(rng):
    errors = rng.random((25, 3)) + np.array([0, 0.1, 0.5])
    table = sig.wilcoxon_holm(errors, ["a", "b", "c"])
    expected = [
        stats.wilcoxon(errors[:, i], errors[:, j]).pvalue for i, j in ((0, 1), (0, 2), (1, 2))
    ]
    np.testing.assert_allclose(table["p"], expected)
    order = np.argsort(expected)
    by_hand = np.maximum.accumulate(np.sort(expected) * [3, 2, 1])
    np.testing.assert_allclose(table["p_holm"][order], np.minimum(by_hand, 1))


def drawn_errors(seed):
    """Errors of five methods; half of the matrices have pairs whose means contradict the ranks."""
    rng = np.random.default_rng(seed)
    errors = rng.gamma(2.0, 0.05, (60, 5))
    errors[:, 1] = errors[:, 0] + 0.01 * rng.normal(size=60)
    if seed % 2:  # better on most rows, far worse on a few
        errors[:, 2] = errors[:, 0] - 0.005
        errors[:6, 2] += 0.5
        errors[:, 3] = errors[:, 0].round(2)  # with ties and zeros
    return errors


@pytest.mark.parametrize("seed", range(10))
def test_signs_and_p_values_are_scipys(seed):
    errors, names = drawn_errors(seed), list("abcde")
    table = sig.wilcoxon_holm(errors, names)
    for row in range(table.n_rows):
        a = errors[:, names.index(table["method"][row])]
        b = errors[:, names.index(table["other"][row])]
        assert table["p"][row] == pytest.approx(stats.wilcoxon(a, b).pvalue, abs=1e-15)
        less = stats.wilcoxon(a, b, alternative="less").pvalue
        more = stats.wilcoxon(a, b, alternative="greater").pvalue
        assert table["better"][row] == str(table["method" if less < more else "other"][row])
        assert table["difference"][row] == pytest.approx(a.mean() - b.mean())
        by_mean = table["method" if a.mean() < b.mean() else "other"][row]
        assert table["conflict"][row] == (by_mean != table["better"][row])
    assert table["conflict"][1] == bool(seed % 2)  # a against c


def test_balanced_ranks_name_no_winner():
    errors = np.array([[0.1, 0.2], [0.2, 0.1]])
    assert sig.wilcoxon_holm(errors, ["a", "b"])["better"].tolist() == [""]
    assert sig.signed_ranks([0.0, 0.0]) == (1.0, 0.0)


def test_bootstrap_interval_covers_as_promised():
    rng = np.random.default_rng(0)
    covered = 0
    for seed in range(200):
        gap = rng.normal(0.3, 1.0, 80)
        _, low, high = sig.bootstrap_difference(
            gap, np.zeros(80), n_resamples=400, random_state=seed
        )
        covered += low <= 0.3 <= high
    assert 0.89 <= covered / 200 <= 0.99


def test_error_table_aligns_the_bags():
    X, y = make_items(2)
    bags = UniformPrevalence(n_bags=8, random_state=0).draw(y)
    frame = evaluate_many({"CC": CC(), "PCC": PCC()}, X, y, X, bags, "ae")
    errors, names = sig.error_table(frame, "ae")
    assert names == ["CC", "PCC"] and errors.shape == (8, 2)
    np.testing.assert_allclose(errors[:, 1], frame["ae"][8:])
    with pytest.raises(InputError, match="not run on the same bags"):
        sig.error_table(frame.rows(np.arange(frame.n_rows) != 3), "ae")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sig.against_best([[1.0, 2.0]], ["a", "b"]), "two rows"),
        (lambda: sig.against_best([[1.0, np.nan]] * 2, ["a", "b"]), "errors of 'b' contain NaN"),
        (lambda: sig.nemenyi([[1.0], [2.0]], ["a", "b"]), "column for each of 2 methods"),
        (lambda: sig.bootstrap_difference([1.0], [0.0], level=2), "level must be"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_nemenyi_agrees_with_scikit_posthocs(rng):
    posthocs = pytest.importorskip("scikit_posthocs")
    errors = rng.random((12, 5)) + np.arange(5) * 0.15
    theirs = posthocs.posthoc_nemenyi_friedman(errors).to_numpy()
    np.testing.assert_allclose(sig.nemenyi(errors, list("abcde")).p, theirs, atol=1e-8)
