import subprocess
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

from headcount import CC, PACC, SLD, Frame, InputError, UniformPrevalence, evaluate_many
from headcount.inference import significance
from headcount.report import figures
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
