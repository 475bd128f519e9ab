"""The map in CONTRIBUTING.md is true: rooms import from the rooms above them, never from below."""

import ast
import re
from pathlib import Path

import pytest

from headcount._core.lazy import homes

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "headcount"
FILES = sorted(SOURCE.rglob("*.py"))
MOST_LINES = 350
MOST_LINES_OF_THE_BASE = 200


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


def imports(tree):
    """Modules of ours that a file imports, wherever in the file, with the names it takes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((a.name, []) for a in node.names if a.name.split(".")[0] == "headcount")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "headcount":
            names = [a.name for a in node.names]
            if node.module != "headcount":
                yield node.module, names
            for name in names if node.module == "headcount" else []:
                inner = f"headcount.{name}"
                yield (inner if room_of(inner) in rooms() else homes("headcount").get(name), [])


def wrong_way(path, source):
    """Imports of a file that go against the order of the rooms."""
    order = rooms()
    own = room_of(module_of(path))
    found = []
    for module, _ in imports(ast.parse(source)):
        target = None if module is None else room_of(module)
        if target is None or own is None or target == own:
            continue
        if order.index(target) > order.index(own):
            found.append(f"{path.name} imports {module}")
    return found


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
    assert not wrong_way(path, path.read_text())


def test_an_import_that_is_turned_round_is_found():
    path = SOURCE / "bags.py"
    lazy = path.read_text() + "\n\ndef late():\n    from headcount.methods import PACC\n"
    assert wrong_way(path, lazy) == ["bags.py imports headcount.methods"]
    assert wrong_way(path, path.read_text() + "\nfrom headcount import SLD\n")


def test_no_module_uses_the_private_names_of_another():
    trees = {path: ast.parse(path.read_text()) for path in FILES}
    own = {path: privates(tree) for path, tree in trees.items()}
    everywhere = set().union(*own.values())
    found = []
    for path, tree in trees.items():
        for module, names in imports(tree):
            found += [f"{path.name}: {module}.{n}" for n in names if n.startswith("_")]
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr in everywhere - own[path]:
                found.append(f"{path.name}, line {node.lineno}: {node.attr}")
    # The rooms _core and kernels/compiled are named by path, which is no private name.
    assert not [f for f in found if "._core" not in f]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_files_stay_small(path):
    lines = len(path.read_text().splitlines())
    assert lines <= (MOST_LINES_OF_THE_BASE if path.match("methods/base.py") else MOST_LINES)


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
