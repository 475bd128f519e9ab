"""The documents run, and name what there is."""

import doctest
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headcount.cli.app import app
from headcount.measures import DEFINITIONS
from headcount.methods.registry import named_methods
from headcount.systems import lequa2022
from headcount.tables import fit
from headcount.testing import check_quantifier

ROOT = Path(__file__).parent.parent
WALKS = [
    "docs/organise.md",
    "docs/participate.md",
    "docs/count.md",
    "README.md",
]  # commands and examples that build on each other
DOCS = sorted(p for p in (ROOT / "docs").glob("*.md") if f"docs/{p.name}" not in WALKS)


@pytest.mark.parametrize("path", DOCS, ids=lambda p: p.name)
def test_examples_in_the_docs_run(path):
    failed, _ = doctest.testfile(str(path), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert failed == 0


def test_the_example_in_the_readme_runs():
    text = (ROOT / "README.md").read_text()
    code = text.split("## As a library\n```python\n")[1].split("```")[0]
    names = {}
    exec(compile(code, "README.md", "exec"), names)
    assert names["bags"].prevalence.shape == (5000, 2)


def test_every_method_is_in_the_chooser():
    chooser = (ROOT / "docs" / "methods.md").read_text()
    for name in named_methods():
        assert f"`{name}`" in chooser, name
    for name in lequa2022.__all__:
        assert f"`{name}`" in chooser, name


def test_every_measure_is_in_the_guide():
    guide = (ROOT / "docs" / "guide.md").read_text()
    for name in DEFINITIONS:
        assert f"`{name}`" in guide, name


def test_every_command_is_mentioned():
    text = (ROOT / "README.md").read_text() + (ROOT / "CHANGELOG.md").read_text()
    assert "headcount demo" in text
    assert {c.callback.__name__ for c in app.registered_commands} == {
        "demo",
        "version",
        "example",
        "fit",
        "estimate",
        "report",
        "monitor",
    }
    pages = "".join(path.read_text() for path in (ROOT / "docs").glob("*.md"))
    for group in app.registered_groups:
        for command in group.typer_instance.registered_commands:
            name = command.name or command.callback.__name__
            assert f"headcount {group.name} {name}" in pages, name


@pytest.mark.parametrize("name", WALKS)
def test_commands_of_the_documents_run(name, tmp_path, monkeypatch):
    """Console lines and Python examples, one after the other, as a reader would."""
    monkeypatch.chdir(tmp_path)
    text = (ROOT / name).read_text().split("## As a library")[0]
    # Which method is best is not the documents' subject, and comparing them takes half a minute.
    quick = {"method": "SLD"}
    monkeypatch.setattr("headcount.tables.fit", lambda *a, **k: fit(*a, **k | quick))
    namespace: dict = {}
    blocks = re.findall(r"```(console|python)\n(.*?)```", text, re.S)
    assert blocks
    for kind, body in blocks:
        if kind == "python" and ">>>" not in body:
            exec(compile(body, name, "exec"), namespace)
            continue
        if kind == "python":
            test = doctest.DocTestParser().get_doctest(body, namespace, name, name, 0)
            failed, _ = doctest.DocTestRunner().run(test, clear_globs=False)
            namespace = test.globs
            assert not failed
            continue
        for line in body.splitlines():
            words, _, code = line.removeprefix("$ headcount ").partition("  # exit ")
            done = CliRunner().invoke(app, shlex.split(words))
            assert done.exit_code == int(code or 0), (line, done.output, done.exception)


def test_the_new_method_of_the_documents_is_short_and_keeps_the_contract(tmp_path, monkeypatch):
    text = (ROOT / "docs" / "contributing.md").read_text()
    block = next(b for b in re.findall(r"```python\n(.*?)```", text, re.S) if "class " in b)
    source = [line[4:] for line in block.splitlines() if line.startswith((">>> ", "... ", "..."))]
    end = next(i for i, line in enumerate(source) if line.startswith("fitted ="))
    assert end < 25
    (tmp_path / "power_count.py").write_text("\n".join(source[:end]))
    monkeypatch.syspath_prepend(tmp_path)
    from power_count import PowerCount

    check_quantifier(PowerCount(), n_classes=2)
    check_quantifier(PowerCount(), n_classes=3)


def test_warnings_that_the_guide_quotes_are_given_somewhere():
    guide = (ROOT / "docs" / "guide.md").read_text()
    part = guide.split("## Warnings worth reading")[1]
    quoted = re.findall(r"^- \*(.+?)\*:", part, re.M)
    assert len(quoted) >= 5
    # Sentences are broken over lines in the source: texts are joined before they are looked for.
    source = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    joined = re.sub(r'"\s*\n\s*f?"', "", source)
    for words in quoted:
        assert words in joined, words
