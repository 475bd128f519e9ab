"""Run the units of a study that are not done yet, here or on a cluster, and join their results."""

from __future__ import annotations

import contextlib
import os
import platform
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed, parallel_config

from headcount import __version__
from headcount._core.files import read_json, write_json, write_parquet
from headcount._core.frame import Frame
from headcount._core.progress import track
from headcount.exceptions import HeadcountError, InputError
from headcount.study.results import BY_CLASS, EXTRA, SEALED, Results, read_sealed, seal
from headcount.study.stages import shift_table, work
from headcount.study.store import Units, worker, working_on
from headcount.study.study import Study, digest
from headcount.study.units import Unit, final_units, join_columns, select_units

_WATCHING = threading.Event()  # whether this process watches for its parent


@dataclass(frozen=True)
class Status:
    """How far a study is."""

    name: str
    selected: int
    to_select: int
    tested: int
    to_test: int | None  # unknown until the selection is done
    finished: bool
    damaged: int = 0  # files that fail their checksum: of units, or the results
    worker: str = ""  # the process that is working on it

    def __str__(self) -> str:
        if self.finished:
            return f"{self.name}: finished ({self.selected + self.tested} units)."
        lines = [f"{self.name}: {self.selected} of {self.to_select} selection units done"]
        if self.to_test is not None:
            lines.append(f"{self.tested} of {self.to_test} test units done")
        if self.damaged:
            lines.append(f"{self.damaged} damaged")
        end = f"{self.worker} is working on it." if self.worker else "Run it again to go on."
        return f"{', '.join(lines)}. {end}"


def run(
    study: Study,
    folder: str | Path,
    *,
    n_jobs: int | None = None,
    dask: str | None = None,
    progress: bool = False,
) -> Results:
    """Run a study, or what is left of it; its results are the same however often it was stopped.

    Parameters
    ----------
    study : Study
    folder : path
        Gets ``results.parquet``, ``selection.parquet`` (where something was selected),
        ``provenance.json``, and ``units/`` with the outcome of every unit of work.
    n_jobs : int, optional
        Units worked on at once.
    dask : str, optional
        Address of a Dask scheduler to work on, such as ``tcp://10.0.0.1:8786``.
    progress : bool, default False
        Whether to show a bar.
    """
    home = Path(folder)
    prints = {data.name: data.fingerprint() for data in study.datasets}
    with working_on(home), _backend(dask):
        _sweep(home)
        first = select_units(study)
        provenance = _provenance(study, prints)
        _forget_others(home, provenance["hash"])
        write_json(home / "plan.json", _plan(study, first, None, prints))
        chosen = _outcomes(first, home, prints, n_jobs, "selecting", progress)
        second, selection = final_units(study, _joined(chosen) if chosen else None)
        if not second:
            assert selection is not None
            reasons = dict.fromkeys(selection["failure"].tolist())
            raise InputError("\n".join(["every setting of every method failed:", *reasons]))
        write_json(home / "plan.json", _plan(study, first, second, prints))
        parts = _outcomes(second, home, prints, n_jobs, "testing", progress)
        shift = shift_table(
            study, lambda u: _outcomes(u, home, prints, n_jobs, "measuring shift", progress)
        )
        tables = {"results.parquet": _ordered(_joined(parts), study)}
        extra = zip(EXTRA, (selection, shift), strict=True)
        _finish(home, provenance, tables | {k: v for k, v in extra if v is not None})
    return Results.read(home)


def _finish(home: Path, provenance: dict[str, Any], tables: dict[str, Frame]) -> None:
    """Write the tables, and last of all their checksums with how they were made."""
    for name, table in tables.items():
        write_parquet(home / name, table)
    write_json(home / SEALED, seal(home, provenance, tables))


def status(folder: str | Path) -> Status:
    """Tell how far a study is, from its folder alone."""
    home = Path(folder)
    if not (home / "plan.json").is_file():
        raise InputError(f"{str(home)!r} holds no study: start one by 'headcount study run'.")
    try:
        plan = read_json(home / "plan.json")
        name, first, second = plan["name"], set(plan["select"]), plan["test"]
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{str(home / 'plan.json')!r} is damaged: run the study again.") from None
    whole, damaged = Units(home).find()
    done = set(whole)
    tested = len(done & set(second or []))
    n_damaged = len(damaged) + _are_damaged(home)
    complete = first <= done and second is not None and tested == len(second)
    finished = complete and (home / SEALED).is_file()
    return Status(
        name,
        len(done & first),
        len(first),
        tested,
        None if second is None else len(second),
        finished and not n_damaged,
        n_damaged,
        worker(home),
    )


def _are_damaged(home: Path) -> bool:
    """Whether results are there and not as they were written."""
    if not (home / SEALED).is_file():
        return False
    try:
        read_sealed(home)
    except (OSError, ValueError):
        return True
    return False


def _outcomes(
    units: list[Unit],
    home: Path,
    prints: dict[str, str],
    n_jobs: int | None,
    what: str,
    progress: bool,
) -> list[Frame]:
    """Outcome of every unit, in order; those that are there already are only read."""
    store = Units(home)
    ids = [u.id(prints[u.dataset.name]) for u in units]
    paths = store.clean()
    left = [i for i, unit in enumerate(ids) if unit not in paths]
    # Arrays are sent, not mapped: kernels are compiled for arrays that can be written to.
    parallel = Parallel(
        n_jobs=n_jobs, return_as="generator_unordered", max_nbytes=None, batch_size=1
    )
    tasks = (delayed(_numbered)(i, units[i], os.getpid()) for i in left)
    found = parallel(tasks) if left else iter(())
    told = f"{what} ({len(units) - len(left)} done before)" if len(left) < len(units) else what
    for i, frame in track(found, told, len(left), progress):
        paths[ids[i]] = store.write(ids[i], frame)
    return [store.read(paths[unit]) for unit in ids]


def _numbered(i: int, unit: Unit, parent: int) -> tuple[int, Frame]:
    end_with_parent(parent)
    return i, work(unit)


def end_with_parent(parent: int) -> None:
    """Make a worker process of this machine end when the process that started it is gone.

    A parent that is killed cannot tell its workers to stop, so that they watch for it. A process
    that `parent` did not start itself, such as a worker of a cluster, is left alone.
    """
    if os.getppid() != parent or _WATCHING.is_set():
        return
    _WATCHING.set()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, name="headcount-parent", daemon=True).start()


@contextlib.contextmanager
def _backend(dask: str | None) -> Iterator[None]:
    """Where units run: in processes of this machine, or on a Dask cluster."""
    if dask is None:
        yield
        return
    try:
        from distributed import Client
    except ImportError:
        raise HeadcountError("--dask needs the extra: pip install 'headcount[dask]'.") from None
    try:
        client = Client(dask, timeout=10)  # type: ignore[no-untyped-call]
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(f"no Dask scheduler answers at {dask!r}: {error}") from None
    with client, parallel_config(backend="dask", client=client):
        yield


def _forget_others(home: Path, mine: str) -> None:
    """Remove the results of another study from the folder; finished units are kept."""
    about = home / "provenance.json"
    try:
        same = (read_json(about) or {}).get("hash") == mine
    except ValueError:
        same = False
    if not same:
        for name in ("results.parquet", *EXTRA, "provenance.json", "report.html"):
            (home / name).unlink(missing_ok=True)


def _sweep(home: Path) -> None:
    """Remove what a killed run was writing."""
    for path in home.glob(".*.part"):
        path.unlink(missing_ok=True)


def _plan(
    study: Study, first: list[Unit], second: list[Unit] | None, prints: dict[str, str]
) -> dict[str, Any]:
    def ids(units: list[Unit]) -> list[str]:
        return [u.id(prints[u.dataset.name]) for u in units]

    return {
        "name": study.name,
        "select": ids(first),
        "test": None if second is None else ids(second),
    }


def _joined(parts: list[Frame]) -> Frame:
    """One frame of all columns, those of the classes together."""
    joined = join_columns(parts)
    classes = [n for n in joined if n.startswith(BY_CLASS)]
    classes.sort(key=lambda n: [n.startswith(p) for p in BY_CLASS], reverse=True)
    about = [n for n in joined if n not in classes]
    split = about.index("size") + 1 if "size" in about else len(about)
    return Frame({name: joined[name] for name in [*about[:split], *classes, *about[split:]]})


def _ordered(frame: Frame, study: Study) -> Frame:
    """Rows by data set, method, measure, seed and bag; bags of later seeds get other numbers."""
    order = {name: i for i, name in enumerate(data.name for data in study.datasets)}
    place = np.array([order[name] for name in frame["dataset"].tolist()])
    seeds = {seed: i for i, seed in enumerate(study.seeds)}
    turn = np.array([seeds[int(seed)] for seed in frame["seed"]])
    labels = {label: i for i, label in enumerate(["", *study.measures])}
    label = np.array([labels[name] for name in frame["selected_by"].tolist()])
    rows = np.lexsort([frame["bag"], turn, label, frame["number"], place])
    n_bags = int(frame["bag"].max()) + 1
    bag = np.asarray(frame["bag"] + turn * n_bags)
    columns = {**frame.to_dict(), "bag": bag}
    del columns["number"]
    return Frame(columns).rows(rows)


def _provenance(study: Study, prints: dict[str, str]) -> dict[str, Any]:
    """How the results came about; nothing of it depends on where or when it ran."""
    described = study.description(prints)
    libraries = ("numpy", "scipy", "scikit-learn", "numba", "joblib", "pyarrow")
    return {
        "study": described,
        "hash": digest(described),
        "published": study.published,
        **({"notes": list(study.notes)} if study.notes else {}),
        "versions": {
            "headcount": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in libraries},
        },
        "datasets": {
            data.name: {"hash": prints[data.name], **data.about(), **_test_shares(data)}
            for data in study.datasets
        },
    }


def _test_shares(data: Any) -> dict[str, Any]:
    """Share of each class among the test items, where their labels are at hand."""
    part = getattr(data, "test", None)
    if part is None or getattr(part, "y", None) is None:
        return {}
    counts = np.array([(part.y == c).sum() for c in data.classes])
    return {"test_prevalence": (counts / counts.sum()).tolist()}
