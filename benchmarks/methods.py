"""Matching, threshold and density methods against the peers, from scores to 5,000 estimates.

make bench-methods                          # or: python benchmarks/methods.py [T1A] [T1B]
"""

from __future__ import annotations

import argparse
import sys

import harness  # first: it sets one thread for everybody
import headcount as hc
import peers
import workloads
from headcount.methods.base import without_calibration


def contestants(task, train, y, pool):
    """Rows of the table: method, library, and how to make it."""

    def ours(method):
        def make():
            fitted = without_calibration(method).fit_scores(train, y)
            return lambda bags: fitted.predict_scores(pool, bags)

        return "Headcount", make

    def quapy(name, **options):
        return "QuaPy", lambda: peers.quapy(name, train, y, pool, **options)

    def mlq(name, **options):
        return "mlquantify", lambda: peers.mlquantify(name, train, y, pool, **options)

    def qlib(name, **options):
        make = peers.quantificationlib_matching
        return "quantificationlib", lambda: make(name, train, y, pool, **options)

    two = task == "T1A"
    rows = []
    if two:
        rows += [
            ("HDy", ours(hc.HDy()), quapy("HDy"), mlq("HDy")),
            ("DyS, 8 bins, HD", ours(hc.DyS(n_bins=8, divergence="hd")), quapy("DyS")),
            ("DyS, median, Topsoe", ours(hc.DyS()), mlq("DyS")),
            ("SORD", ours(hc.SORD()), mlq("SORD")),
            ("SMM", ours(hc.SMM()), quapy("SMM"), mlq("SMM")),
            ("X", ours(hc.methods.X()), quapy("X")),
            ("MAX", ours(hc.MAX()), quapy("MAX")),
            ("T50", ours(hc.T50()), quapy("T50")),
            ("MS", ours(hc.MS()), quapy("MS")),
            ("MS, 101 thresholds", ours(hc.MS(n_thresholds=101)), mlq("MS")),
            ("MS2", ours(hc.MS2()), quapy("MS2")),
            ("ContinuousSweep", ours(hc.ContinuousSweep())),
        ]
    rows += [
        ("FM", ours(hc.FM()), mlq("FM"), qlib("FriedmanME")),
        ("DMy, 8 bins, HD", ours(hc.DMy()), quapy("DMy"), mlq("GHDy")),
        ("EDy, Manhattan", ours(hc.EDy()), quapy("EDy"), qlib("EDy")),
        ("EDy, Euclidean", ours(hc.EDy(distance="euclidean")), mlq("EDy")),
        ("CvMy", ours(hc.CvMy()), qlib("CvMy")),
        ("MMD", ours(hc.MMD())),
        ("MMD, 500 Fourier features", ours(hc.MMD(n_features=500))),
        ("KDEy-ML", ours(hc.KDEyML()), quapy("KDEyML"), mlq("KDEyML")),
        ("KDEy-CS", ours(hc.KDEyCS()), quapy("KDEyCS")),
        ("KDEy-HD", ours(hc.KDEyHD()), quapy("KDEyHD")),
        ("ELSA", ours(hc.ELSA())),
        ("RML, tau0 = 1e-5", ours(hc.RML(tau0=1e-5))),
    ]
    for name, *runs in rows:
        for run in runs:
            yield name, *run


def main() -> None:
    """Print a table for each workload named on the command line, or for both."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks", nargs="*", help="T1A and T1B by default")
    parser.add_argument("--only", help="rows whose method starts with this")
    given = parser.parse_args()
    print(harness.machine("quapy", "mlquantify", "quantificationlib"), end="\n\n")
    for task in given.tasks or workloads.SPECS:
        train, y, pool, bags = workloads.scores(task)
        results = []
        for method, library, make in contestants(task, train, y, pool):
            if given.only and not method.startswith(given.only):
                continue
            try:
                results.append(harness.run(method, library, make, bags))
            except RuntimeError as error:
                print(f"{task} {method}: {error}", file=sys.stderr, flush=True)
                continue
            print(f"{task} {method} {library}: {results[-1].seconds:.4g} s", file=sys.stderr)
        print(harness.table(results, f"{task}-like: {bags}"), flush=True)


if __name__ == "__main__":
    main()
