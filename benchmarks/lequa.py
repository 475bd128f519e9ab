"""The LeQua lab at full size: build, read, solve; needs some 10 GB of disk.

    python benchmarks/lequa.py FOLDER

T1A (5,000 training items, 1,000 + 5,000 samples of 250, 300 columns) is built from made-up reviews
and written in the official text layout. Reading 500 of its samples is compared with pandas over
the same files; then all of it is read, and opened again from the cache. T1B (20,000 training items,
1,000 + 500 samples of 1,000) is built, read back and solved by SLD, with its peak memory.
"""

from __future__ import annotations

import multiprocessing
import resource
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from headcount import SLD
from headcount.lequa import build_lab, make_corpus, open_task, score_runs, solve
from headcount.lequa.build import SENTIMENT, Recipe


def timed(work: Callable):
    began = time.perf_counter()
    found = work()
    return found, time.perf_counter() - began


def size(folder: Path) -> float:
    return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file()) / 1e9


def vectors(home: Path) -> None:
    """Build T1A in the official layout, and read it."""
    if not (home / "T1A").is_dir():
        corpus, seconds = timed(lambda: make_corpus(60_000, random_state=0))
        print(f"60,000 made-up reviews: {seconds:.0f} s", flush=True)
        recipe = Recipe(label="stars", labels=SENTIMENT, helpful="helpful", forms=("vector",))
        _, seconds = timed(lambda: build_lab(corpus, home, recipe, official=True))
        print(
            f"T1A in the official layout: {seconds:.0f} s, {size(home / 'T1A'):.1f} GB", flush=True
        )
    few = home / "few" / "T1A" / "public"
    if not few.is_dir():
        (few / "test_samples").mkdir(parents=True)
        public = home / "T1A" / "public"
        for name in ("label_map.txt", "training_data.txt"):
            shutil.copy(public / name, few / name)
        for i in range(500):
            shutil.copy(public / "test_samples" / f"{i}.txt", few / "test_samples" / f"{i}.txt")
    shutil.rmtree(home / "few" / "T1A" / ".headcount-T1A", ignore_errors=True)
    files = sorted((few / "test_samples").iterdir())
    open_task(few.parent)  # compile, and bring the files into the system's cache
    shutil.rmtree(home / "few" / "T1A" / ".headcount-T1A")
    _, theirs = timed(lambda: [pd.read_csv(path) for path in [few / "training_data.txt", *files]])
    _, ours = timed(lambda: open_task(few.parent))
    print(
        f"500 samples and the training set: pandas {theirs:.1f} s, Headcount {ours:.1f} s",
        flush=True,
    )
    shutil.rmtree(home / "T1A" / ".headcount-T1A", ignore_errors=True)
    _, first = timed(lambda: open_task(home / "T1A").test)
    task, again = timed(lambda: open_task(home / "T1A"))
    samples, opened = timed(lambda: task.test)
    print(
        f"all 6,000 samples: first read {first:.1f} s, from the cache {again + opened:.2f} s "
        f"({first / (again + opened):.0f} times faster), compact form "
        f"{size(home / 'T1A' / '.headcount-T1A'):.2f} GB for {len(samples.X):,} distinct test items"
    )


def solved(home: Path) -> None:
    """Build T1B, read it back and solve it; run in a process of its own for its peak memory."""
    if not (home / "T1B").is_dir():
        corpus = make_corpus(90_000, random_state=1)
        recipe = Recipe(label="category", n_train=20_000, n_test=500, size=1000, forms=("vector",))
        build_lab(corpus, home, recipe)
    task = open_task(home / "T1B")
    (estimates, _), seconds = timed(lambda: solve(task, SLD(calibrator="bcts"), search=False))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"T1B by SLD: {seconds:.0f} s, peak memory {peak:.1f} GB (building it included)")
    print(score_runs(task.truth("test"), {"SLD": estimates}, size=task.size))


def main() -> None:
    home = Path(sys.argv[1] if len(sys.argv) > 1 else "lequa-benchmark")
    vectors(home)
    child = multiprocessing.get_context("spawn").Process(target=solved, args=(home,))
    child.start()
    child.join()


if __name__ == "__main__":
    main()
