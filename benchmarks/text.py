"""Front ends for texts, on real data: errors, time to fit, documents a second.

    HEADCOUNT_SHARED_DATA=... python benchmarks/text.py

Needs reviews, emotions and semeval in Parquet, and the environment of `make test-heavy`. Each front
end gets the same labelled documents and the same bags; the encoder starts without a cache. Then the
throughput of tf-idf is compared with scikit-learn's own vectoriser in the same run.
"""

from __future__ import annotations

import os
import time
import warnings
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from headcount import SLD, UniformPrevalence, evaluate
from headcount.systems.lequa2022 import uni_padova
from headcount.text import SentenceEncoder, TextQuantifier, TfIdf

HOME = Path(os.environ.get("HEADCOUNT_SHARED_DATA", "../shared/data"))
N_TRAIN, N_POOL = 1500, 1500


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    table = pq.read_table(HOME / f"{name}.parquet").to_pandas()
    if name == "reviews":
        table = table[table.sentiment.notna()]
        return table.text.to_numpy(), table.sentiment.astype(int).to_numpy()
    if name == "semeval":
        table = table[(table.subtask == "A") & (table.year.astype(str) == "2016")]
    else:
        common = table.label.value_counts().index[:10]
        table = table[table.label.isin(common)]
    return table.text.to_numpy(), table.label.to_numpy()


def front_ends() -> dict:
    sld = SLD(LogisticRegression(max_iter=1000), calibrator="bcts")
    return {
        "tf-idf + SLD": TextQuantifier(sld),
        "word vectors + SLD": TextQuantifier(sld, vectorizer="words"),
        "GloVe + SLD": TextQuantifier(sld, vectorizer="glove"),
        "MiniLM + SLD": TextQuantifier(sld, vectorizer=SentenceEncoder(cache=None), fit_once=True),
        "BM25 + CC": uni_padova(),
    }


def main() -> None:
    warnings.simplefilter("ignore")
    print("| data | front end | AE | RAE | fit s | documents/s |")
    print("|---|---|---:|---:|---:|---:|")
    for name in ("reviews", "emotions", "semeval"):
        X, y = load(name)
        rows = np.random.default_rng(0).permutation(len(y))
        train, pool = rows[:N_TRAIN], rows[N_TRAIN : N_TRAIN + N_POOL]
        protocol = UniformPrevalence(n_bags=300, size=100, random_state=0)
        bags = protocol.draw(y[pool], classes=np.unique(y[train]))
        for label, model in front_ends().items():
            began = time.perf_counter()
            model.fit(X[train], y[train])
            fitted = time.perf_counter()
            result = evaluate(model, X[pool], bags, ["ae", "rae"])
            pace = len(pool) / (time.perf_counter() - fitted)
            print(
                f"| {name} | {label} | {result['ae'].mean():.4f} | {result['rae'].mean():.3f} | "
                f"{fitted - began:.1f} | {pace:,.0f} |",
                flush=True,
            )
    texts = load("reviews")[0][:20_000]
    makers = {"scikit-learn": lambda: TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)}
    makers["Headcount"] = TfIdf
    best = dict.fromkeys(makers, float("inf"))
    for _ in range(3):
        for library, make in makers.items():
            began = time.perf_counter()
            make().fit(texts).transform(texts)
            best[library] = min(best[library], time.perf_counter() - began)
    paces = {k: len(texts) / v for k, v in best.items()}
    print(
        f"\ntf-idf, fit and transform of {len(texts):,} reviews: Headcount "
        f"{paces['Headcount']:,.0f} documents/s, scikit-learn {paces['scikit-learn']:,.0f} "
        f"(ratio {paces['Headcount'] / paces['scikit-learn']:.2f})"
    )


if __name__ == "__main__":
    main()
