"""People who visit the site, a clock that stands, and small tasks; for tests and measurements."""

import json
import re
from datetime import UTC, datetime, timedelta

import numpy as np
from fastapi.testclient import TestClient

from headcount.lequa.runs import write_run
from headcount.lequa.task import write_bags, write_items, write_task
from headcount.protocols import UniformPrevalence
from headcount.site.app import create_app

PASSWORD = "correct horse battery"
START = datetime(2026, 5, 1, 12, tzinfo=UTC)


def make_task(folder, name, k, *, n_dev=12, n_test=20, size=40, ordinal=False, text=False):
    """A task of random items, in the compact form, with its gold apart."""
    rng = np.random.default_rng([k, len(name)])
    home = folder / name
    y = rng.permutation(np.arange(60) % k)
    X = rng.normal(size=(60, 3)).astype(np.float32) + y[:, None]
    pool_y = rng.permutation(np.arange(200) % k)
    pool = rng.normal(size=(200, 3)).astype(np.float32) + pool_y[:, None]
    if text:
        X = np.array([f"word{c} text" for c in y], dtype=object)
        pool = np.array([f"word{c} text" for c in pool_y], dtype=object)
    write_items(home, "train", X, y)
    for split, n in (("dev", n_dev), ("test", n_test)):
        protocol = UniformPrevalence(n_bags=n, size=size, random_state=n)
        bags = protocol.draw(pool_y, classes=np.arange(k))
        write_items(home, split, pool)
        write_bags(home, split, bags)
        truth = np.asarray(bags.prevalence)
        gold = home if split == "dev" else folder / "gold" / name
        write_run(gold / f"{split}_prevalences.txt", truth)
        write_run(home / f"dummy_{split}_predictions.txt", np.full((n, k), 1 / k))
    write_task(
        home,
        name=name,
        form="text" if text else "vector",
        size=size,
        classes=[f"class {c}" for c in range(k)],
        columns=0 if text else 3,
        ordinal=ordinal,
    )
    about = json.loads((home / "task.json").read_text())
    (home / "task.json").write_text(json.dumps(about | {"seed": 7}))  # as old labs have it


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self):
        self.at = START

    def __call__(self):
        return self.at

    def move(self, **delta):
        self.at += timedelta(**delta)


def app_of(site):
    """The application of a site, made once."""
    if not hasattr(site, "app"):
        site.app = create_app(site)
    return site.app


class Person:
    """Someone with a browser that follows links and sends forms back as they came."""

    def __init__(self, site, **client):
        self.site = site
        self.app = app_of(site)
        self.http = TestClient(self.app, base_url="http://testserver", **client)

    def get(self, path, **kwargs):
        return self.http.get(path, **kwargs)

    def token_of(self, path):
        found = re.search(r'name="form_token" value="([0-9a-f]+)"', self.get(path).text)
        assert found, path
        return found[1]

    def send(self, page, action=None, files=None, **fields):
        """Open a page, then send one of its forms."""
        data = {"form_token": self.token_of(page), **fields}
        return self.http.post(action or page, data=data, files=files, follow_redirects=False)

    def register(self, name, team=None, **more):
        answer = self.send("/register", name=name, password=PASSWORD, **more)
        assert answer.status_code == 303, answer.text
        if team:
            assert self.send("/team", name=team).status_code == 303
        return self

    def log_in(self, name, password=PASSWORD):
        return self.send("/login", name=name, password=password)

    def upload(self, path, task="T1A", **fields):
        files = {"file": (fields.pop("file_name", path.name), path.read_bytes())}
        page = f"/tasks/{task}"
        return self.send(page, f"{page}/runs", files=files, **fields)

    def run_id(self, answer):
        assert answer.status_code == 303, answer.text
        return int(answer.headers["location"].removeprefix("/runs/"))

    def token(self, *scopes, days=90):
        """A token with these scopes, as headers of a request."""
        answer = self.send("/tokens", name="test", days=str(days), scopes=list(scopes))
        secret = re.search(r"hct_[\w-]+", answer.text)
        assert secret, answer.text
        return {"Authorization": f"Bearer {secret[0]}"}


def phase_form(clock, **more):
    """Fields of a test phase that is open for a day and hides its scores."""
    opens, closes = clock() - timedelta(hours=1), clock() + timedelta(days=1)
    return {
        "name": "Test",
        "split": "test",
        "opens_at": opens.strftime("%Y-%m-%dT%H:%M:%S"),
        "closes_at": closes.strftime("%Y-%m-%dT%H:%M:%S"),
        "hidden": "true",
        "counts": "last",
        **more,
    }
