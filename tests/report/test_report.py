import subprocess
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

from headcount import CC, PACC, SLD, Frame, InputError, UniformPrevalence, evaluate_many
from headcount.inference import significance
from headcount.report import figures, page, pieces
from headcount.report.tables import result_table
from headcount.testing.quantifiers import make_items


@pytest.fixture(scope="module")
def results():
    X, y = make_items(3)
    bags = UniformPrevalence(n_bags=40, size=60, random_state=0).draw(y)
    methods = {"CC": CC(), "PACC": PACC(), "SLD & co_1": SLD()}
    parts = []
    for name in ("one", "two"):
        frame = evaluate_many(methods, X, y, X, bags, ["ae", "rae"]).to_dict()
        parts.append({"dataset": np.full(120, name), **frame})
    return Frame({c: np.concatenate([p[c] for p in parts]) for c in parts[0]})


def test_table_holds_means_ranks_and_marks(results):
    table = result_table(results, "ae")
    assert table.datasets == ["one", "two"]
    mine = (results["method"] == "PACC") & (results["dataset"] == "two")
    assert table.means[1, 1] == pytest.approx(results["ae"][mine].mean())
    for j in range(2):
        best = int(np.argmin(table.means[:, j]))
        assert table.marks[best][j] == "best" and table.ranks[best, j] == 1
    assert table.average == pytest.approx(table.means.mean(axis=1))


def test_table_prints_in_every_form(results):
    table = result_table(results, "ae", digits=4)
    best = f"{table.means.min():.4f}"
    assert f"{best}*" in str(table) and "average rank" in str(table)
    assert f"**{best}**" in table.to_markdown()
    assert table.to_markdown().count("\n") == 4
    latex = table.to_latex()
    assert rf"\textbf{{{best}}}" in latex and r"SLD \& co\_1" in latex
    assert latex.startswith(r"\begin{tabular}{lrrrr}") and "†" not in latex
    page = table.to_html()
    assert f"<b>{best}</b>" in page and "SLD &amp; co_1" in page and page.count("<tr>") == 4


def test_table_refuses_what_cannot_be_compared(results):
    alone = result_table(results.rows(results["method"] == "CC"), "ae")
    assert str(alone).splitlines()[1].startswith("CC")  # one method is shown, without tests
    with pytest.raises(InputError, match="no results"):
        result_table(results.rows(results["method"] == "nobody"), "ae")
    lacking = ~((results["method"] == "CC") & (results["dataset"] == "two"))
    with pytest.raises(InputError, match=r"methods \['CC'\] have no results on data set 'two'"):
        result_table(results.rows(lacking), "ae")
    with pytest.raises(InputError, match="unknown column 'nmd'"):
        result_table(results, "nmd")


def _figures(frame):
    errors, names = significance.error_table(frame, "ae")
    yield figures.critical_difference(significance.nemenyi(errors, names))
    yield figures.error_by_shift(frame, "ae", np.full(3, 1 / 3))
    yield figures.error_by_shift(frame, "rae", np.full(3, 1 / 3), log=True)
    yield figures.diagonal(frame, "1")
    yield figures.bias_boxes(frame)
    yield figures.shift_ends(frame, "ae", np.full(3, 1 / 3))
    truth = np.column_stack([frame[f"true:{c}"] for c in range(3)])
    yield figures.ternary(truth, ["a", "b", "c"], frame["ae"])


def test_figures_are_figures_and_svg_is_repeatable(results):
    frame = results.rows(results["dataset"] == "one")
    for first, second in zip(_figures(frame), _figures(frame), strict=True):
        assert isinstance(first, Figure)
        text = figures.to_svg(first)
        assert text.startswith("<svg") and text == figures.to_svg(second)


def test_error_by_shift_draws_the_mean_of_each_bin(results):
    frame = results.rows((results["dataset"] == "one") & (results["method"] != "CC"))
    training = np.array([0.2, 0.3, 0.5])
    axes = figures.error_by_shift(frame, "ae", training, n_bins=4).axes[0]
    mine = frame.rows(frame["method"] == "PACC")
    truth = np.column_stack([mine[f"true:{c}"] for c in range(3)])
    shift = np.abs(truth - training).mean(axis=1)
    edges = np.linspace(0, shift.max(), 5)
    cell = np.clip(np.digitize(shift, edges) - 1, 0, 3)
    expected = [mine["ae"][cell == b].mean() for b in range(4) if (cell == b).any()]
    np.testing.assert_allclose(axes.lines[0].get_ydata(), expected)


def test_zero_errors_stay_on_a_logarithmic_axis():
    truth = np.tile(np.linspace(0, 1, 21), 2)
    frame = Frame(
        {
            "method": ["exact"] * 21 + ["off"] * 21,
            "bag": np.tile(np.arange(21), 2),
            "true:0": truth,
            "true:1": 1 - truth,
            "rae": np.concatenate([np.zeros(21), np.full(21, 0.1)]),
        }
    )
    axes = figures.error_by_shift(frame, "rae", np.array([0.5, 0.5]), n_bins=5, log=True).axes[0]
    low, high = axes.get_ylim()
    assert axes.get_yscale() == "symlog" and low < 0 < 0.1 < high
    shown = axes.transData.transform([[0.2, 0.0], [0.2, 0.1]])[:, 1]
    assert np.isfinite(shown).all() and shown[0] < shown[1]
    without = frame.rows(frame["method"] == "off")
    axes = figures.error_by_shift(without, "rae", np.array([0.5, 0.5]), log=True).axes[0]
    assert axes.get_yscale() == "log"


def test_shift_figure_has_bins_of_a_width_and_lines_of_a_span(results):
    frame = results.rows(results["dataset"] == "one")
    axes = figures.error_by_shift(
        frame, "ae", np.full(3, 1 / 3), width=0.05, span=(0.002, 0.1055)
    ).axes
    edges = [patch.get_x() for patch in axes[1].patches]
    np.testing.assert_allclose(np.diff(edges), 0.05)
    dotted = [line.get_xdata()[0] for line in axes[0].lines if line.get_linestyle() == ":"]
    assert dotted == [0.002, 0.1055]


def test_bias_boxes_show_outliers_of_every_class(results):
    frame = results.rows(results["dataset"] == "one").to_dict()
    frame = Frame({**frame, "estimate:1": np.where(frame["bag"] == 0, 9.0, frame["estimate:1"])})
    figure = figures.bias_boxes(frame)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["0", "1", "2"]
    fliers = [line for line in figure.axes[1].lines if line.get_marker() == "."]
    assert any(np.max(line.get_ydata(), initial=0) > 7 for line in fliers)
    assert len(figures.bias_boxes(frame, pooled=True).axes) == 1


def test_averages_have_bold_and_marks(results):
    three = [
        {**results.rows(results["dataset"] == "one").to_dict(), "dataset": np.full(120, name)}
        for name in "abc"
    ]
    rng = np.random.default_rng(0)
    frame = Frame({c: np.concatenate([p[c] for p in three]) for c in three[0]})
    frame = Frame({**frame.to_dict(), "ae": frame["ae"] + 0.01 * rng.random(360)})
    table = result_table(frame, "ae")
    outcome = significance.against_best(table.means.T, table.methods)
    expected = dict(zip(outcome["method"].tolist(), outcome["mark"].tolist(), strict=True))
    assert table.average_marks == [expected[m] for m in table.methods]
    best = f"{table.average.min():.3f}"
    assert f"<b>{best}</b></td><td><b>" in table.to_html()  # and its average rank


def test_signs_have_the_levels_of_the_tweet_paper():
    signs = [pieces.sign(p, better) for p in (0.01, 0.0099, 0.0009) for better in (True, False)]
    assert signs == ["≈", "≈", ">", "<", "≫", "≪"]
    rng = np.random.default_rng(1)
    good = rng.random(200)
    errors = np.column_stack([good, good + 0.1, rng.random(200)])
    html = pieces.pairs(errors, ["good", "bad", "other"], ["good", "bad", "other"])
    assert "Uncorrected" in html and "Holm" in html
    assert "<th scope=row>good</th><td>-</td><td>≫</td>" in html
    conflict = np.column_stack([good, np.where(np.arange(200) < 20, good + 5, good - 0.01)])
    assert "≪*" in pieces.pairs(conflict, ["a", "b"], ["a", "b"])


def test_published_signs_of_2016_mirror_each_other():
    table = page.published("gs2016_wilcoxon")
    mirror = str.maketrans("<>≪≫", "><≫≪")
    signs = {
        key: sign
        for *key, sign in zip(*(table[c].tolist() for c in table.columns), strict=True)
        for key in [tuple(key)]
    }
    assert len(signs) == 112
    for (measure, a, b), sign in signs.items():
        assert signs[measure, b, a] == sign.translate(mirror)


def test_published_ranks_are_those_of_the_published_errors():
    ranks = page.published("tweets_ranks")
    assert ranks.n_rows == 2 * 11 * 8
    for measure in ("ae", "rae"):
        mine = ranks.rows(ranks["measure"] == measure)
        for name in ("CC", "PCC", "SLD"):
            got = mine["gs2016_rank"][mine["method"] == name].mean()
            said = {"ae": (4.8, 1.7, 5.5), "rae": (4.3, 2.0, 5.4)}[measure]
            assert got == pytest.approx(said[("CC", "PCC", "SLD").index(name)], abs=0.06)


def test_figures_leave_pyplot_and_settings_alone():
    code = (
        "import sys, matplotlib; before = matplotlib.rcParams.copy();"
        "from headcount.report import figures; import numpy as np;"
        "figures.to_svg(figures.ternary(np.eye(3), list('abc')));"
        "print('matplotlib.pyplot' in sys.modules, matplotlib.rcParams.copy() == before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_figure_refusals(results):
    with pytest.raises(InputError, match="three classes"):
        figures.ternary(np.ones((3, 2)) / 2, ["a", "b"])
    with pytest.raises(InputError, match="2 shares for 3 classes"):
        figures.shift_ends(results, "ae", np.array([0.5, 0.5]))
