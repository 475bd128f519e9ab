"""Numbers for Prometheus, added up over all processes."""

from __future__ import annotations

import os

from prometheus_client import REGISTRY as LOCAL
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    generate_latest,
    multiprocess,
)

requests = Counter("headcount_requests", "Requests answered.", ["method", "route", "status"])
seconds = Histogram("headcount_request_seconds", "Time to answer.", ["route"])
uploads = Counter("headcount_uploads", "Uploads, by what became of them.", ["result"])


def exposition() -> bytes:
    """All numbers in Prometheus' text form."""
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return generate_latest(LOCAL)
    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry)
