"""Ten million rows of scores and dates, by month: time and memory against pyarrow alone.

python benchmarks/stream.py [--rows 10000000] [--times 10]
python benchmarks/stream.py --groups 12,1000,1000000

The second counts the rows in as many groups instead, with PACC alone.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import harness  # first: it sets one thread for everybody
from headcount import PACC, SLD
from headcount.methods.base import without_calibration


def table(path: Path, rows: int, rng: np.random.Generator, groups: Sequence[int] = ()) -> None:
    """Two score columns and a date, in parts; the share of positives rises month by month.

    More columns put the rows into so many groups at random.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer = None
    for start in range(0, rows, 1_000_000):
        n = min(1_000_000, rows - start)
        days = np.sort(rng.integers(0, 48 * 30, size=n)) if start == 0 else rng.integers(0, 1440, n)
        p, _ = scores(rng, 0.2 + 0.4 * days / 1440)
        stamps = (np.datetime64("2022-01-01") + days).astype("datetime64[D]")
        columns = {f"in {g}": rng.integers(g, size=n) for g in groups}
        part = pa.table({"no": 1 - p, "yes": p, "date": stamps, **columns})
        writer = writer or pq.ParquetWriter(path, part.schema)
        writer.write_table(part)
    writer.close()


def scores(rng: np.random.Generator, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Posteriors of a classifier that was trained on equal shares, and the classes."""
    y = rng.random(len(share)) < share
    x = rng.normal(np.where(y, 0.8, -0.8))
    return 1 / (1 + np.exp(-1.6 * x)), y


def measured(function, *args) -> tuple[float, float, object]:
    """Seconds, MB above the start, and the answer, in a process of its own."""
    here, there = multiprocessing.get_context("fork").Pipe(duplex=False)

    def child() -> None:
        warnings.simplefilter("ignore")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        began = time.perf_counter()
        answer = function(*args)
        spent = time.perf_counter() - began
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        there.send((spent, (peak - before) / 1024, peak / 1024, answer))

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    answer = here.recv()
    process.join()
    return answer


def read(path: Path) -> int:
    """Read the file with pyarrow, whole, and nothing else."""
    import pyarrow.parquet as pq

    return pq.read_table(path, use_threads=False).num_rows


def read_parts(path: Path) -> int:
    """Read it in parts, as a program of bounded memory has to."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        return sum(batch.num_rows for batch in file.iter_batches(1 << 18, use_threads=False))


def count_all(model, paths: list[str], by: str = "month:date"):
    """Shares by month, or in groups, with intervals and tests."""
    from headcount.data.stream import sources

    found = model.estimate(sources(paths), by=by)
    return found.interval.prevalence, int(found.sizes.sum())


def main() -> None:
    """Print a table."""
    from headcount.tables import Inputs, Model

    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--groups", default="")
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    p, y = scores(rng, np.full(5000, 0.4))
    labelled = np.column_stack([1 - p, p]), np.where(y, "yes", "no")
    print(harness.machine("pyarrow"), end="\n\n")
    if args.groups:
        model = Model(
            PACC(calibrate_width=False).fit_scores(*labelled),
            Inputs("scores", ("no", "yes")),
            "label",
        )
        count_groups(model, args.rows, [int(g) for g in args.groups.split(",")], rng)
        return
    print("| what | rows | seconds | times pyarrow, parts | MB, peak |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "heap.parquet"
        table(path, args.rows, rng)
        small = Path(folder) / "small.parquet"
        table(small, 1000, rng)
        whole, base = measured(read, path), measured(read_parts, path)
        print(row("pyarrow, whole", args.rows, whole, base))
        print(row("pyarrow, parts", args.rows, base, base))
        for name, method in (("SLD, BCTS", SLD(calibrator="bcts")), ("PACC", PACC())):
            quantifier = without_calibration(method).fit_scores(*labelled)
            model = Model(quantifier, Inputs("scores", ("no", "yes")), "label")
            count_all(model, [str(small)])  # compile, before the clock starts
            once = measured(count_all, model, [str(path)])
            print(row(f"headcount, {name}", args.rows, once, base), flush=True)
            if args.times > 1:
                many = measured(count_all, model, [str(path)] * args.times)
                same = np.abs(many[3][0] - once[3][0]).max()
                print(
                    row(f"the same, {args.times} files", args.rows * args.times, many, base),
                    f"estimates differ by {same:.1e}",
                )


def count_groups(model, rows: int, groups: list[int], rng: np.random.Generator) -> None:
    """A line of time and peak memory for each number of groups."""
    print("| groups | seconds | MB, peak |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        path, small = Path(folder) / "heap.parquet", Path(folder) / "small.parquet"
        table(path, rows, rng, groups)
        table(small, 1000, rng, [12])
        count_all(model, [str(small)], "in 12")  # compile, before the clock starts
        for g in groups:
            seconds, _, peak, _ = measured(count_all, model, [str(path)], f"in {g}")
            print(f"| {g:,} | {seconds:.0f} | {peak:.0f} |", flush=True)


def row(name: str, rows: int, result: tuple, base: tuple) -> str:
    """One line of the table."""
    return f"| {name} | {rows:,} | {result[0]:.2f} | {result[0] / base[0]:.1f} | {result[2]:.0f} |"


if __name__ == "__main__":
    main()
