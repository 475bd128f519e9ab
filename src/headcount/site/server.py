"""Run the site: migrations first, then processes that can be stopped without losing anything."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from typing import Any

from headcount.site.settings import Settings

HANDED_ON = "HEADCOUNT_LAB_SETTINGS"  # settings on their way to worker processes
MULTIPROCESS = "PROMETHEUS_MULTIPROC_DIR"


def serve(settings: Settings, tell: Callable[[str], object] = print) -> None:
    """Prepare the database and serve until stopped."""
    metrics = settings.data / "metrics"
    shutil.rmtree(metrics, ignore_errors=True)
    shutil.rmtree(settings.data / "tmp", ignore_errors=True)  # left over from a kill
    metrics.mkdir(parents=True)
    os.environ[MULTIPROCESS] = str(metrics)  # before prometheus_client is imported
    import uvicorn

    from headcount.site.context import Site
    from headcount.site.guard import start_logging

    start_logging(settings.log_level)
    site = Site(settings)
    site.prepare()
    site.close()
    tell(f"Serving {', '.join(site.tasks)} at {settings.url}. The first organiser is made by")
    tell(f"  headcount lab admin organiser NAME --data {settings.data}")
    os.environ[HANDED_ON] = settings.model_dump_json()
    uvicorn.run(
        "headcount.site.server:make_app",
        factory=True,
        host=settings.host,
        port=settings.port,
        workers=settings.workers,
        proxy_headers=True,
        forwarded_allow_ips=settings.proxies,
        access_log=False,
        log_config=None,
        server_header=False,
        timeout_graceful_shutdown=settings.stop_seconds,
        h11_max_incomplete_event_size=32_768,
        http="h11",
    )


def make_app() -> Any:
    """The application of one worker process."""
    from headcount.site.app import create_app
    from headcount.site.context import Site
    from headcount.site.guard import start_logging

    settings = Settings.model_validate_json(os.environ[HANDED_ON])
    start_logging(settings.log_level)
    return create_app(Site(settings))
