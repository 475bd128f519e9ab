"""Memory and time of reading five million made reviews, the first time and from the kept form.

python benchmarks/large_source.py made/ 5000000
"""

from __future__ import annotations

import gzip
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

FILE = "Office_Products_5.json.gz"


def make(path: Path, n: int) -> None:
    """Write reviews of 1 to 250 words between 2008-08 and 2018-07, some without a text."""
    rng = np.random.default_rng(0)
    words = np.array([f"word{i}" for i in range(5000)])
    first, last = (int(np.datetime64(d, "D").astype(int)) for d in ("2008-08-01", "2018-07-31"))
    texts = [" ".join(rng.choice(words, int(k))) for k in rng.geometric(1 / 40, 20_000)]
    with gzip.open(path, "wb", compresslevel=1) as file:
        for start in range(0, n, 50_000):
            days = rng.integers(first, last + 1, 50_000)
            lines = []
            for i, day in enumerate(days.tolist()):
                row = {"overall": float(rng.integers(1, 6)), "verified": True, "vote": "1,203"}
                row |= {"reviewerID": f"A{start + i}", "asin": f"B{i}", "style": {"Color:": "Red"}}
                row |= {"unixReviewTime": day * 86400}
                if i % 1000:
                    row["reviewText"] = texts[(start + i) % len(texts)] + f" {start + i}"
                lines.append(json.dumps(row))
            file.write(("\n".join(lines) + "\n").encode())


def read(folder: Path) -> None:
    """Read, split and take some texts, in a process of its own."""
    from headcount.data.cutting import Preparation, cut_by_time
    from headcount.data.published import PUBLISHED_SETS, read_published

    began = time.perf_counter()
    about = PUBLISHED_SETS["office5"]
    items = read_published(about, folder, folder / "kept")
    cut = about.windows.cut(items.days, items.may_test)
    split = time.perf_counter() - began
    data = cut_by_time("x", items, about.windows, Preparation(most_train=5000, most_test=200))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{len(items):,} items, {len(cut.train):,} for training, {len(cut.names)} test splits; "
        f"read and split in {split:.1f} s, {data!r} after {time.perf_counter() - began:.1f} s; "
        f"peak memory {peak:.2f} GB; {items.counts}"
    )


def main() -> None:
    folder = Path(sys.argv[1])
    if len(sys.argv) == 2:
        read(folder)
        return
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / FILE).is_file():
        make(folder / FILE, int(sys.argv[2]))
    print(f"{(folder / FILE).stat().st_size / 2**20:,.0f} MB")
    for _ in range(2):
        subprocess.run([sys.executable, __file__, str(folder)], check=True)


if __name__ == "__main__":
    main()
