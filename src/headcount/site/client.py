"""Send runs to a lab's site from a program; needs nothing but Python's own library."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from secrets import token_hex
from typing import Any

from headcount.exceptions import HeadcountError, InputError
from headcount.lequa.runs import check_run

TRIES = 4
TIMEOUT = 120


class RefusedError(HeadcountError):
    """The site did not take a request; all faults are in the message."""

    def __init__(self, status: int, message: str, faults: list[str]):
        super().__init__("\n".join([message, *faults]))
        self.status = status
        self.faults = faults


class Client:
    """A lab's site as seen by a participant or an organiser.

    Parameters
    ----------
    url : str
        Address of the site.
    token : str, optional
        As its page of tokens gives it.
    """

    def __init__(self, url: str, token: str | None = None):
        if not url.startswith(("http://", "https://")):
            raise InputError(f"the address must start with http:// or https://, got {url!r}.")
        self.url = url.rstrip("/")
        self.token = token

    def get(self, path: str) -> Any:
        """What the API answers to a request below ``/api/v1``."""
        return self._send(urllib.request.Request(self._address(path), headers=self._headers()))

    def open_phases(self) -> list[dict[str, Any]]:
        """Phases that take runs now."""
        return [phase for phase in self.get("phases") if phase["is_open"]]

    def check(self, path: Path, task: str, phase: int | None = None) -> list[str]:
        """Faults of a run, found here, before anything is sent."""
        about = self.get(f"tasks/{urllib.parse.quote(task, safe='')}")
        splits = {p["split"] for p in self.open_phases() if phase in (None, p["id"])}
        counts = {about["samples"][split] for split in splits if split in about["samples"]}
        if len(counts) != 1:
            return []  # no phase is open, or several are: the site says so
        return check_run(path, len(about["classes"]), counts.pop())

    def submit(
        self,
        path: Path,
        task: str,
        *,
        description: str = "",
        tags: str = "",
        phase: int | None = None,
        baseline: str | None = None,
    ) -> dict[str, Any]:
        """Send a run; tried again after a broken line, and kept once however often it is sent."""
        fields: dict[str, Any] = {"description": description, "tags": tags, "phase": phase}
        fields |= {"baseline": baseline, "file_name": path.name}
        query = urllib.parse.urlencode({k: v for k, v in fields.items() if v})
        address = self._address(f"tasks/{urllib.parse.quote(task, safe='')}/runs?{query}")
        headers = self._headers() | {
            "Content-Type": "application/octet-stream",
            "Idempotency-Key": token_hex(16),
        }
        data = path.read_bytes()
        request = urllib.request.Request(address, data, headers, method="POST")
        found: dict[str, Any] = self._send(request)
        return found

    def _address(self, path: str) -> str:
        return f"{self.url}/api/v1/{path}"

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    def _send(self, request: urllib.request.Request) -> Any:
        opener = urllib.request.build_opener(_NoRedirect)  # a token goes to this site only
        for attempt in range(TRIES):
            try:
                with opener.open(request, timeout=TIMEOUT) as answer:
                    return json.loads(answer.read())
            except urllib.error.HTTPError as error:
                raise _refusal(error) from None
            except (urllib.error.URLError, OSError) as error:
                if attempt == TRIES - 1:
                    reason = getattr(error, "reason", error)
                    raise HeadcountError(f"cannot reach {self.url}: {reason}.") from None
                time.sleep(2**attempt / 4)
            except ValueError:
                raise HeadcountError(f"{self.url} is not a lab's site: no JSON came.") from None
        raise AssertionError("the last try returns or raises")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def _refusal(error: urllib.error.HTTPError) -> HeadcountError:
    try:
        told = json.loads(error.read())["error"]
        return RefusedError(error.code, str(told["message"]), list(map(str, told["faults"])))
    except (ValueError, KeyError, TypeError):
        return RefusedError(error.code, f"the site answered {error.code} {error.reason}.", [])


def post_baselines(
    folder: Path, task: str, url: str, token: str, tell: Callable[[str], object] = print
) -> int:
    """Post every run of ``folder/runs``, as `headcount lequa baselines` writes them.

    Returns
    -------
    how many were posted
    """
    runs = sorted((folder / "runs").glob("*.csv"))
    if not runs:
        raise InputError(f"there are no runs in {str(folder / 'runs')!r}.")
    client = Client(url, token)
    for path in runs:
        run = client.submit(path, task, baseline=path.stem, description="baseline of the lab")
        tell(f"{path.stem}: {run['url']}")
    return len(runs)
