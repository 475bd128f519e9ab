"""A small lab, a site on SQLite and on PostgreSQL, and people who visit it."""

import re
import shutil
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import numpy as np
import pytest
from argon2 import PasswordHasher
from fastapi.testclient import TestClient

from headcount.lequa.runs import read_run, write_run
from headcount.lequa.task import open_task, write_bags, write_items, write_task
from headcount.protocols import UniformPrevalence
from headcount.site import secrecy
from headcount.site.accounts import add_user
from headcount.site.app import create_app
from headcount.site.context import Site
from headcount.site.settings import Settings

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
        seed=7,
    )


@pytest.fixture(scope="session", autouse=True)
def _quick_hashes():
    """Passwords of tests are hashed quickly; one test looks at the real settings."""
    with pytest.MonkeyPatch.context() as patch:
        quick = PasswordHasher(time_cost=1, memory_cost=1024, parallelism=1)
        patch.setattr(secrecy, "_hasher", quick)
        yield


@pytest.fixture(scope="session")
def lab_folder(tmp_path_factory):
    """A lab with a binary, a multi-class, an ordinal and a text task."""
    folder = tmp_path_factory.mktemp("lab")
    make_task(folder, "T1A", 2)
    make_task(folder, "T1B", 4)
    make_task(folder, "T3", 5, ordinal=True)
    make_task(folder, "T2A", 2, text=True)
    return folder


@pytest.fixture(scope="session")
def runs_folder(lab_folder, tmp_path_factory):
    """Runs of known quality: `good` is nearer to the truth than `bad`; faulty ones too."""
    folder = tmp_path_factory.mktemp("runs")
    rng = np.random.default_rng(0)
    for name in ("T1A", "T1B", "T3", "T2A"):
        task = open_task(lab_folder / name)
        for split in ("dev", "test"):
            truth = task.truth(split)
            noise = rng.dirichlet(np.ones(task.n_classes), len(truth))
            for quality, share in (("perfect", 0), ("good", 0.1), ("middle", 0.3), ("bad", 0.8)):
                write_run(
                    folder / f"{name}-{split}-{quality}.csv", (1 - share) * truth + share * noise
                )
    lines = (folder / "T1A-dev-good.csv").read_text().splitlines()
    lines[3] = "2,nan,0.5"
    lines[5] = "4,0.9,0.9"
    (folder / "faulty.csv").write_text("\n".join(lines[:-1]) + "\n")
    return folder


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self):
        self.at = START

    def __call__(self):
        return self.at

    def move(self, **delta):
        self.at += timedelta(**delta)


@pytest.fixture
def clock():
    return Clock()


def database_kinds():
    return ["sqlite", "postgresql"]


@pytest.fixture(params=database_kinds())
def database_url(request, tmp_path):
    """A new, empty database of either kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'site.db'}"
        return
    server = request.getfixturevalue("postgres")
    name = server.create()
    yield server.url(name)
    server.drop(name)


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL server of our own."""
    from postgres import start_postgres

    with start_postgres() as server:
        yield server


@pytest.fixture
def make_site(lab_folder, database_url, tmp_path, clock):
    """A function that opens a site with settings of its own."""
    opened = []

    def make(**settings):
        values = {"lab": lab_folder, "data": tmp_path / "data", "database": database_url}
        values |= {"logins_per_minute": 1000, "uploads_per_minute": 1000}
        site = Site(Settings(**(values | settings)), clock)
        site.prepare()
        opened.append(site)
        return site

    yield make
    for site in opened:
        site.close()


@pytest.fixture
def site(make_site):
    return make_site()


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


@pytest.fixture
def visit(site):
    """A function that gives a new visitor of the site."""
    return lambda: Person(site)


@pytest.fixture
def organiser(site, clock):
    with site.database.writing() as session:
        add_user(session, clock(), name="boss", password=PASSWORD, role="organiser")
    person = Person(site)
    assert person.log_in("boss").status_code == 303
    return person


@pytest.fixture
def alice(site):
    return Person(site).register("alice", "Team A")


@pytest.fixture
def bob(site):
    return Person(site).register("bob", "Team B")


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


@pytest.fixture
def test_phase(organiser, clock):
    """A hidden test phase, number 2; the development phase is frozen."""
    answer = organiser.send("/organise/phases/new", **phase_form(clock))
    assert answer.status_code == 303, answer.text
    assert organiser.send("/organise", "/organise/phases/1/freeze").status_code == 303
    return 2


@pytest.fixture
def truth(lab_folder):
    return lambda task, split: read_run(
        lab_folder / "gold" / task / "test_prevalences.txt"
        if split == "test"
        else lab_folder / task / "dev_prevalences.txt"
    )


@pytest.fixture
def namespace():
    return SimpleNamespace


@pytest.fixture
def copied_lab(lab_folder, tmp_path):
    """A lab that a test may change."""
    return shutil.copytree(lab_folder, tmp_path / "lab")
