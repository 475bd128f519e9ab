"""`headcount fit`, `estimate`, `report` and `monitor`: shares with intervals, per month."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headcount.cli.render import (
    as_csv,
    as_json,
    changes_text,
    choice_text,
    shares_text,
    write_frame,
)
from headcount.exceptions import InputError, choose

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headcount._core.frame import Frame
    from headcount.data.stream import Source
    from headcount.tables import Count, Model, Note

Files = Annotated[
    list[str],
    typer.Argument(help="CSV, TSV, Parquet, JSON lines, .gz; - is standard input."),
]
ModelFile = Annotated[Path, typer.Argument(help="Model that `headcount fit` wrote.")]
By = Annotated[
    str | None,
    typer.Option(
        help="Group by a column, or by a period of dates: month:date (year, quarter, "
        "month, week, day, hour)."
    ),
]
Truth = Annotated[
    str | None, typer.Option(help="Column of true labels, to compare the estimates with.")
]
Level = Annotated[float, typer.Option(help="Level of the intervals.")]
Only = Annotated[str | None, typer.Option("--only", help="Show this class alone.")]
Format = Annotated[
    str | None, typer.Option("--format", help="Kind of input where the name does not tell.")
]
Encoding = Annotated[str, typer.Option(help="Encoding of text files.")]


def fit(
    files: Files,
    label: Annotated[str, typer.Option(help="Column of labels.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write.")],
    text: Annotated[str | None, typer.Option(help="Column of texts to look at.")] = None,
    features: Annotated[
        str | None, typer.Option(help="Columns of numbers and categories: a,b,c.")
    ] = None,
    scores: Annotated[
        str | None, typer.Option(help="Columns with a classifier's scores: p_no,p_yes.")
    ] = None,
    method: Annotated[
        str, typer.Option(help="auto tries the likely winners; or a quantifier, such as SLD.")
    ] = "auto",
    measure: Annotated[
        str, typer.Option(help="What auto is to be good at: ae, rae, se, kld or nmd.")
    ] = "ae",
    expect: Annotated[
        str, typer.Option(help="learn, any shift, mild shift or no shift, of class shares.")
    ] = "learn",
    budget: Annotated[float, typer.Option(help="Seconds after which auto tries no more.")] = 120,
    calibrator: Annotated[
        str | None,
        typer.Option(
            help="With a method: curves, bcts, platt, isotonic, temperature, vs, nbvs or none."
        ),
    ] = None,
    vectorizer: Annotated[
        str, typer.Option(help="tfidf, words, glove, learnt, minilm, a file or a folder.")
    ] = "tfidf",
    kind: Format = None,
    encoding: Encoding = "utf8",
) -> None:
    """Learn from labelled rows how to count the classes of others."""
    from headcount.data.stream import sources
    from headcount.tables import Inputs, learn

    given = {"text": text, "features": features, "scores": scores}
    chosen = [(name, value) for name, value in given.items() if value]
    if len(chosen) != 1:
        raise InputError("give one of --text, --features and --scores: what to look at.")
    name, value = chosen[0]
    columns = [value] if name == "text" else [c.strip() for c in value.split(",")]
    found = sources(files, kind)
    if output.suffix != ".hc":
        raise InputError(f"{str(output)!r}: the name of a model file ends in .hc.")
    if name != "text" and vectorizer != "tfidf":
        raise InputError("--vectorizer is about texts: it goes with --text.")
    with _reading(found) as progress:
        model = learn(
            found,
            Inputs(name, tuple(columns)),
            label,
            method=method,
            measure=measure,
            expect=expect,
            budget=budget,
            calibrator=calibrator,
            verbose=sys.stderr.isatty(),
            vectorizer=vectorizer,
            encoding=encoding,
            say=_note,
            progress=progress,
        )
    model.save(output)
    _praise(model)
    typer.echo(f"Wrote {output}. Now: headcount estimate {output} FILE --by month:DATE")


def estimate(
    model: ModelFile,
    files: Files,
    by: By = None,
    truth: Truth = None,
    level: Level = 0.95,
    only: Only = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write .csv, .json or .parquet instead of a table."),
    ] = None,
    show: Annotated[str, typer.Option("--as", help="Printed as table, csv or json.")] = "table",
    kind: Format = None,
    encoding: Encoding = "utf8",
) -> None:
    """Estimate the share of every class, with intervals, for every group of rows."""
    choose("--as", show, ["table", "csv", "json"])
    if output is not None:
        choose("ending of --output", output.suffix, [".csv", ".json", ".parquet"])
    found, _ = _counted(model, files, by, truth, level, kind, encoding)
    frame = _only(found.to_frame(), only)
    if output is not None:
        write_frame(frame, output)
        typer.echo(f"Wrote {output}", err=True)
    elif show == "table":
        typer.echo(shares_text(frame, level))
    else:
        typer.echo(as_csv(frame) if show == "csv" else as_json(frame), nl=False)
    _said(found)


def report(
    model: ModelFile,
    files: Files,
    by: By = None,
    truth: Truth = None,
    level: Level = 0.95,
    output: Annotated[Path, typer.Option("--output", "-o", help="Page to write.")] = Path(
        "report.html"
    ),
    title: Annotated[str | None, typer.Option(help="Heading of the page.")] = None,
    kind: Format = None,
    encoding: Encoding = "utf8",
) -> None:
    """Write a page: the trend with bands, the table, the warnings, and what it all means."""
    from headcount._core.files import write_text
    from headcount.report.trend import trend_page

    if output.suffix not in (".html", ".htm"):
        raise InputError(f"{str(output)!r}: the name of a page ends in .html.")
    found, loaded = _counted(model, files, by, truth, level, kind, encoding)
    names = ", ".join("standard input" if f == "-" else Path(f).name for f in files)
    write_text(output, trend_page(found, loaded, title or f"How many in {names}"))
    _said(found)
    typer.echo(f"Wrote {output}")


def monitor(
    model: ModelFile,
    files: Files,
    by: Annotated[str, typer.Option(help="Column, or period and column of dates: month:date.")],
    reference: Annotated[
        str | None, typer.Option(help="Groups to compare with: a,b or first..last; the first.")
    ] = None,
    level: Level = 0.95,
    only: Only = None,
    every: Annotated[bool, typer.Option("--all", help="Show unchanged groups too.")] = False,
    kind: Format = None,
    encoding: Encoding = "utf8",
) -> None:
    """Tell which groups changed beyond chance since a reference; exit code 1 if any did."""
    from headcount.tables import changes, first_group

    found, _ = _counted(model, files, by, None, level, kind, encoding, target="population")
    frame = _only(changes(found, _reference(reference, found.groups)), only)
    shown = frame if every else frame.rows(frame["changed"])
    if shown.n_rows:
        typer.echo(changes_text(shown))
    _said(found)
    n = len(dict.fromkeys(frame["group"][frame["changed"]].tolist()))
    total = len(dict.fromkeys(frame["group"].tolist()))
    since = reference or first_group(found)
    typer.echo(
        f"{n} of {total} groups differ from {since} beyond chance (Holm's correction, level "
        f"{level:g})."
    )
    if n:
        raise typer.Exit(1)


def _counted(
    model: Path,
    files: list[str],
    by: str | None,
    truth: str | None,
    level: float,
    kind: str | None,
    encoding: str,
    target: str = "bag",
) -> tuple[Count, Model]:
    import warnings

    from headcount.data.stream import sources
    from headcount.exceptions import UnreliableWarning
    from headcount.tables import Model, count

    loaded = Model.load(model)
    found = sources(files, kind)
    with warnings.catch_warnings(record=True) as caught, _reading(found) as progress:
        warnings.simplefilter("always", UnreliableWarning)
        counted = count(
            loaded,
            found,
            by=by,
            truth=truth,
            level=level,
            target=target,
            encoding=encoding,
            progress=progress,
        )
    for warning in caught:
        if issubclass(warning.category, UnreliableWarning):
            _note(str(warning.message))
    return counted, loaded


def _reference(text: str | None, groups: Sequence[str]) -> list[str] | None:
    """Names of groups from ``a,b`` or ``first..last``."""
    if text is None:
        return None
    if ".." in text and text not in groups:
        first, last = (part.strip() for part in text.split("..", 1))
        for name in (first, last):
            choose("group", name, groups)
        a, b = groups.index(first), groups.index(last)
        return list(groups[min(a, b) : max(a, b) + 1])
    return [text] if text in groups else [part.strip() for part in text.split(",")]


@contextmanager
def _reading(found: Sequence[Source]) -> Iterator[Callable[[int], None] | None]:
    """A bar of what was read, on a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TransferSpeedColumn,
    )

    total = sum(source.size for source in found) or None
    columns = (
        TextColumn("reading"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=total)
        yield lambda done: bar.advance(task, done)


def _note(note: Note | str) -> None:
    """A note, with the option that has to do with it."""
    hint = ""
    if not isinstance(note, str) and note.kind == "truth is there":
        hint = f" (--truth {note.subject})"
    if not isinstance(note, str) and note.kind in ("no date", "no group"):
        hint = f" ({note.names[0]})"
    typer.echo(f"note: {note}{hint}", err=True)


def _said(found: Count) -> None:
    """Notes, and the warnings of groups; many groups with the same fault share a line."""
    for note in found.notes:
        _note(note)
    for text, groups in found.messages().items():
        names = ", ".join(groups[:6]) + (f" and {len(groups) - 6} more" if len(groups) > 6 else "")
        typer.echo(f"warning: {names}: {text}.", err=True)


def _praise(model: Model) -> None:
    """What was learnt, and how good it is on bags that it had not seen."""
    s = model.summary
    shares = ", ".join(f"{c} {p:.1%}" for c, p in s["shares"].items())
    typer.echo(f"Learnt from {s['rows']:,} rows: {shares}.")
    if s.get("choice"):
        typer.echo(choice_text(s["choice"]))
    q = s["quality"]
    if q is not None and (q["error"] > q["counting"] + 0.02 or q["coverage"] < 0.8):
        typer.echo(
            "warning: this model does badly on its own labelled rows (see below): are the scores "
            "of the right classes, and on rows that their classifier was not trained on?",
            err=True,
        )
    if q is None:
        typer.echo("Too few labelled rows to check it: 10 of every class are needed.")
        return
    typer.echo(
        f"Checked on {q['bags']} bags of {q['size']} rows that it had not seen, with shares "
        f"{q['shares']}: off by {100 * q['error']:.1f} points on average (plain counting by "
        f"{100 * q['counting']:.1f}); the 95 % intervals held {q['coverage']:.0%} of the shares."
    )


def _only(frame: Frame, name: str | None) -> Frame:
    if name is None:
        return frame
    choose("class", name, dict.fromkeys(frame["class"].tolist()))
    return frame.rows(frame["class"] == name)
