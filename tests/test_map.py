"""The map in CONTRIBUTING.md is true: rooms import from the rooms above them, never from below."""

import ast
import re
from pathlib import Path

import pytest

from headcount._core.lazy import homes
from tests.imports import Imports, cycles

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "headcount"
FILES = sorted(SOURCE.rglob("*.py"))
MOST_LINES = 400

# Modules that import by a name that is worked out while they run, and why that is no way round the
# order of the rooms.
COMPUTED = {
    "headcount._core.lazy",  # public names of a package, which its stub lists
    "headcount.methods.files",  # types that a model file may hold, of any room
    "headcount.methods.registry",  # public names of methods
    "headcount.study.build",  # a classifier of the user's, by its path
    "headcount.testing.quantifiers",  # libraries of data frames
}


def rooms():
    """Rooms in the order of the table in CONTRIBUTING.md."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    return re.findall(r"^\| `([\w/.]+)` \|", text, re.M)


def room_of(module):
    """Room of a module's dotted name: its package below headcount, or its own file."""
    parts = module.split(".")
    if len(parts) == 1:
        return None
    return f"{parts[1]}/" if (SOURCE / parts[1]).is_dir() else f"{parts[1]}.py"


def module_of(path):
    inner = path.relative_to(SOURCE).with_suffix("")
    return ".".join(["headcount", *[p for p in inner.parts if p != "__init__"]])


MODULES = {module_of(path) for path in FILES}


def public_names(package):
    """Modules of the public names of a package that loads them when they are first used."""
    stub = SOURCE.joinpath(*package.split(".")[1:], "__init__.pyi")
    return homes(package) if stub.is_file() else {}


def imports_of(source, module, is_package=False):
    return Imports.of(source, module, is_package, MODULES, public_names)


def imports_of_file(path):
    return imports_of(path.read_text(), module_of(path), path.name == "__init__.py")


def wrong_way(source, module, is_package=False):
    """Imports of a module that go against the order of the rooms."""
    order, own = rooms(), room_of(module)
    if own is None:
        return []
    reached = sorted(imports_of(source, module, is_package).reached)
    targets = [(m, room_of(m)) for m in reached]
    return [m for m, room in targets if room and order.index(room) > order.index(own)]


def privates(tree):
    """Private names that a file defines, as functions, classes, methods or attributes."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            found.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return {name for name in found if name.startswith("_") and not name.startswith("__")}


def test_the_map_names_every_room_and_no_other():
    there = {
        f"{p.name}/"
        for p in SOURCE.iterdir()
        if p.is_dir() and (p / "__init__.py").is_file() and p.name != "__pycache__"
    }
    there |= {p.name for p in SOURCE.glob("*.py") if p.name != "__init__.py"}
    assert set(rooms()) == there
    assert len(rooms()) == len(set(rooms()))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_rooms_import_only_from_above(path):
    assert not wrong_way(path.read_text(), module_of(path), path.name == "__init__.py")


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_can_be_read(path):
    assert not imports_of_file(path).computed or module_of(path) in COMPUTED


def test_no_modules_import_each_other():
    graph = {module_of(path): imports_of_file(path).reached for path in FILES}
    assert not cycles(graph)


UPWARD = [
    "def late():\n    from headcount.methods import PACC",
    "from headcount import SLD",
    "from headcount import methods",
    "import headcount.methods.adjusting as adjusting",
    "from ..methods import PACC",
    "from ..methods.adjusting import *",
    "from .. import methods",
    "import headcount\nheadcount.methods.PACC()",
    "import headcount as h\ndef late():\n    return h.methods.adjusting.PACC()",
    "import headcount\nheadcount.SLD()",
    "import headcount.bags\nheadcount.methods.PACC()",
    "import importlib\nimportlib.import_module('headcount.methods')",
    "from importlib import import_module as load\nload('headcount.methods.adjusting')",
    "from importlib import import_module\nimport_module('..methods', package='headcount.scores')",
    "from importlib import import_module\nimport_module('..methods', __package__)",
    "__import__('headcount.methods')",
    "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from headcount.methods import PACC",
]


@pytest.mark.parametrize("source", UPWARD)
def test_an_import_that_is_turned_round_is_seen(source):
    targets = wrong_way(source, "headcount.scores.scorer")
    assert targets
    assert all(t.startswith("headcount.methods") for t in targets)


def test_relative_imports_of_a_package_start_at_the_package():
    assert wrong_way("from ..methods import PACC", "headcount.scores", is_package=True)
    own = imports_of("from .scorer import Held", "headcount.scores", is_package=True)
    assert own.reached == {"headcount.scores.scorer"}


@pytest.mark.parametrize(
    "source",
    [
        "from headcount.scores import Held\nHeld.methods.PACC",
        "import numpy as np\nnp.methods",
        "from importlib import import_module\nimport_module('numpy')",
        "from .crossfit import cross_fit",
        "'from headcount.methods import PACC'",
    ],
)
def test_imports_from_above_are_no_fault(source):
    assert not wrong_way(source, "headcount.scores.scorer")


def test_public_names_lead_to_the_module_that_defines_them():
    homely = imports_of("from headcount.methods import PACC", "headcount.methods.blend").reached
    by_attribute = imports_of(
        "from headcount import methods\nmethods.PACC", "headcount.methods.blend"
    ).reached
    assert "headcount.methods.adjusting" in homely & by_attribute


def test_a_computed_import_is_seen():
    source = "from importlib import import_module as load\nload(f'headcount.{name}')"
    assert imports_of(source, "headcount.bags").computed == ["load(f'headcount.{name}')"]


def made_up_graph(**sources):
    known = {"made", *(f"made.{name}" for name in sources)}
    return {
        f"made.{name}": Imports.of(source, f"made.{name}", False, known, lambda _: {}).reached
        for name, source in sources.items()
    }


@pytest.mark.parametrize(
    "back",
    [
        "from made.a import y",
        "def late():\n    from made.a import y",
        "from .a import y",
        "from . import a",
        "import made\nmade.a.y",
        "from importlib import import_module\nimport_module('made.a')",
    ],
)
def test_cycles_between_modules_of_one_package_are_seen(back):
    assert cycles(made_up_graph(a="from made.b import x", b=back)) == [["made.a", "made.b"]]
    longer = made_up_graph(a="import made.b", b="import made.c", c=back, d="import made.a")
    assert cycles(longer) == [["made.a", "made.b", "made.c"]]


def test_a_chain_of_imports_is_no_cycle():
    assert not cycles(made_up_graph(a="import made.b, made.c", b="import made.c", c="", d=""))


def test_no_module_uses_the_private_names_of_another():
    own = {path: privates(ast.parse(path.read_text())) for path in FILES}
    everywhere = set().union(*own.values())
    faults = []
    for path in FILES:
        # The rooms _core and kernels/compiled are named by path, which is no private name.
        names = [(m, n) for m, n in imports_of_file(path).names if n != "_core"]
        faults += [f"{path.name}: {m}.{n}" for m, n in names if re.match("_[^_]", n)]
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr in everywhere - own[path]:
                faults.append(f"{path.name}, line {node.lineno}: {node.attr}")
    assert not faults


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_files_stay_small(path):
    assert len(path.read_text().splitlines()) <= MOST_LINES


def test_importing_everything_changes_no_global_state():
    """Limits of the csv module, filters of warnings, numpy's settings: all stay as they were."""
    import subprocess
    import sys

    modules = [
        module_of(p) for p in FILES if "__main__" not in p.name and "migrations" not in p.parts
    ]
    code = f"""
import csv, importlib, sys, warnings
import numpy as np, sklearn, scipy.stats, pyarrow, joblib, typer, numba
def state():
    return (csv.field_size_limit(), list(warnings.filters), np.geterr(),
            sys.getrecursionlimit(), str(np.get_printoptions()))
before = state()
for name in {modules!r}:
    try:
        importlib.import_module(name)
    except ImportError as error:
        assert "headcount[" in str(error) or "pip install" in str(error), (name, error)
assert state() == before, [a for a, b in zip(state(), before) if a != b]
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
