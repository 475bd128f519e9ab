"""`headcount fit`, `estimate`, `report` and `monitor`: shares with intervals, per month."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headcount._core.files import check_output
from headcount.cli.notes import show_note, show_remarks, warnings_as_notes
from headcount.cli.reading import show_reading
from headcount.cli.render import as_json, write_frame
from headcount.exceptions import InputError, choose

if TYPE_CHECKING:
    from headcount._core.frame import Frame
    from headcount.tables import Count, Model

Files = Annotated[
    list[str],
    typer.Argument(help="CSV, Excel, Parquet, JSON lines, .gz; - is standard input."),
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
Weight = Annotated[
    str | None, typer.Option(help="Column of row weights: shares are then shares of weight.")
]
Level = Annotated[float, typer.Option(help="Level of the intervals.")]
Only = Annotated[str | None, typer.Option("--only", help="Show this class alone.")]
Format = Annotated[
    str | None, typer.Option("--format", help="Kind of input where the name does not tell.")
]
Encoding = Annotated[str, typer.Option(help="Encoding of text files.")]
DateFormat = Annotated[
    str | None,
    typer.Option(help="day-first, month-first, s, ms, excel, or a format such as %d.%m.%y."),
]
TimeZone = Annotated[
    str | None, typer.Option(help="Clock that dates are put on, such as Europe/Berlin.")
]


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
    by: Annotated[
        str | None,
        typer.Option(
            help="Groups that will be asked about, as in estimate: their labelled rows are used, "
            "and the model is tried on groups that it had not seen."
        ),
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
    budget: Annotated[
        float,
        typer.Option(
            help="Work that auto may do, in units of about one second of one core; computed from "
            "sizes, so that the result does not depend on the machine."
        ),
    ] = 120,
    calibrator: Annotated[
        str | None,
        typer.Option(
            help="With a method: curves, bcts, platt, isotonic, temperature, vs, nbvs or none."
        ),
    ] = None,
    vectorizer: Annotated[
        str, typer.Option(help="tfidf, words, glove, learnt, minilm, a file or a folder.")
    ] = "tfidf",
    min_rows: Annotated[
        int | None,
        typer.Option(help='Classes with fewer labelled rows are joined into "other".', min=1),
    ] = None,
    rare: Annotated[str, typer.Option(help="With --min-rows: join or drop.")] = "join",
    force: Annotated[
        bool, typer.Option("--force", help="Write the model even if it is useless.")
    ] = False,
    kind: Format = None,
    encoding: Encoding = "utf8",
    date_format: DateFormat = None,
    time_zone: TimeZone = None,
) -> None:
    """Learn from labelled rows how to count the classes of others."""
    from headcount.data.stream import sources
    from headcount.tables import fit as fit_tables

    if output.suffix != ".hc":
        raise InputError(f"{str(output)!r}: the name of a model file ends in .hc.")
    check_output(output)
    if not text and vectorizer != "tfidf":
        raise InputError("--vectorizer is about texts: it goes with --text.")
    found = sources(files, kind)
    with warnings_as_notes(), show_reading(found) as progress:
        model = fit_tables(
            found,
            text=text,
            features=_columns(features),
            scores=_columns(scores),
            label=label,
            by=by,
            date_format=date_format,
            time_zone=time_zone,
            min_rows=min_rows,
            rare=rare,
            force=force,
            method=method,
            measure=measure,
            expect=expect,
            budget=budget,
            calibrator=calibrator,
            verbose=sys.stderr.isatty(),
            vectorizer=vectorizer,
            encoding=encoding,
            on_note=show_note,
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
    weight: Weight = None,
    level: Level = 0.95,
    only: Only = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write .csv, .json or .parquet instead of a table."),
    ] = None,
    show: Annotated[str, typer.Option("--as", help="Printed as table, csv or json.")] = "table",
    kind: Format = None,
    encoding: Encoding = "utf8",
    date_format: DateFormat = None,
    time_zone: TimeZone = None,
) -> None:
    """Estimate the share of every class, with intervals, for every group of rows."""
    choose("--as", show, ["table", "csv", "json"])
    if output is not None:
        choose("ending of --output", output.suffix, [".csv", ".json", ".parquet"])
        check_output(output)
    dates = date_format, time_zone
    found = _counted(model, files, by, truth, weight, level, kind, encoding, *dates, only)
    frame = _only(found.to_frame(), only)
    if output is not None:
        write_frame(frame, output)
        typer.echo(f"Wrote {output}", err=True)
    elif show == "table":
        from headcount.tables.result import shares_text

        typer.echo(shares_text(frame, level))
    else:
        typer.echo(frame.to_csv() if show == "csv" else as_json(frame), nl=False)
    show_remarks(found)


def report(
    model: ModelFile,
    files: Files,
    by: By = None,
    truth: Truth = None,
    weight: Weight = None,
    level: Level = 0.95,
    only: Only = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Page to write.")] = Path(
        "report.html"
    ),
    title: Annotated[str | None, typer.Option(help="Heading of the page.")] = None,
    kind: Format = None,
    encoding: Encoding = "utf8",
    date_format: DateFormat = None,
    time_zone: TimeZone = None,
) -> None:
    """Write a page: the trend with bands, the table, the warnings, and what it all means."""
    if output.suffix not in (".html", ".htm"):
        raise InputError(f"{str(output)!r}: the name of a page ends in .html.")
    check_output(output)
    dates = date_format, time_zone
    found = _counted(model, files, by, truth, weight, level, kind, encoding, *dates, only)
    names = ", ".join("standard input" if f == "-" else Path(f).name for f in files)
    found.report(title or f"How many in {names}", only).save(output)
    show_remarks(found)
    typer.echo(f"Wrote {output}")


def monitor(
    model: ModelFile,
    files: Files,
    by: Annotated[str, typer.Option(help="Column, or period and column of dates: month:date.")],
    reference: Annotated[
        str | None, typer.Option(help="Groups to compare with: a,b or first..last; the first.")
    ] = None,
    weight: Weight = None,
    level: Level = 0.95,
    only: Only = None,
    every: Annotated[bool, typer.Option("--all", help="Show unchanged groups too.")] = False,
    fail_on: Annotated[
        str, typer.Option(help="What to fail on: change (exit code 1), misfit (3), change,misfit.")
    ] = "change",
    kind: Format = None,
    encoding: Encoding = "utf8",
    date_format: DateFormat = None,
    time_zone: TimeZone = None,
) -> None:
    """Tell which groups changed beyond chance since a reference; exit code 1 if any did."""
    from headcount.tables import first_group
    from headcount.tables.estimation import FIT_LEVEL
    from headcount.tables.result import changes_text

    fails = _columns(fail_on) or []
    for name in fails:
        choose("--fail-on", name, ["change", "misfit"])
    dates = date_format, time_zone
    found = _counted(
        model, files, by, None, weight, level, kind, encoding, *dates, only, target="population"
    )
    frame = _only(found.monitor(reference), only)
    shown = frame if every else frame.rows(frame["changed"])
    if shown.n_rows:
        typer.echo(changes_text(shown))
    show_remarks(found)
    n = len(dict.fromkeys(frame["group"][frame["changed"]].tolist()))
    total = len(dict.fromkeys(frame["group"].tolist()))
    since = reference or first_group(found)
    typer.echo(
        f"{n} of {total} groups differ from {since} beyond chance (Holm's correction, level "
        f"{level:g})."
    )
    misfits = int((found.diagnosis.fit < FIT_LEVEL).sum())
    if "misfit" in fails:
        typer.echo(
            f"{misfits} of {len(found.groups)} groups have scores that shares do not explain."
        )
    if n and "change" in fails:
        raise typer.Exit(1)
    if misfits and "misfit" in fails:
        raise typer.Exit(3)


def _counted(
    model: Path,
    files: list[str],
    by: str | None,
    truth: str | None,
    weight: str | None,
    level: float,
    kind: str | None,
    encoding: str,
    date_format: str | None,
    time_zone: str | None,
    only: str | None,
    target: str = "bag",
) -> Count:
    from headcount.data.stream import sources
    from headcount.tables import Model

    loaded = Model.load(model)
    if only is not None:
        choose("class", only, loaded.class_names)
    found = sources(files, kind)
    with warnings_as_notes(), show_reading(found) as progress:
        return loaded.estimate(
            found,
            by=by,
            truth=truth,
            weight=weight,
            level=level,
            target=target,
            encoding=encoding,
            date_format=date_format,
            time_zone=time_zone,
            progress=progress,
        )


def _columns(text: str | None) -> list[str] | None:
    """Names of columns from ``a,b``."""
    return [c.strip() for c in text.split(",")] if text else None


def _praise(model: Model) -> None:
    """What was learnt, and how good it is on bags that it had not seen."""
    from headcount.tables.training import training_text

    quality = model.training.quality
    if quality is not None and quality.is_bad:
        typer.echo(
            "warning: this model does badly on its own labelled rows (see below): are the scores "
            "of the right classes, and on rows that their classifier was not trained on?",
            err=True,
        )
    typer.echo(training_text(model.training))


def _only(frame: Frame, name: str | None) -> Frame:
    if name is None:
        return frame
    choose("class", name, dict.fromkeys(frame["class"].tolist()))
    return frame.rows(frame["class"] == name)
