"""A small lab, a site on SQLite and on PostgreSQL, and people who visit it."""

import shutil

import numpy as np
import pytest
from argon2 import PasswordHasher
from people import PASSWORD, Clock, Person, make_task, phase_form

from headcount.lequa.opening import open_task
from headcount.lequa.runs import read_run, write_run
from headcount.site import secrecy
from headcount.site.accounts import add_user
from headcount.site.context import Site
from headcount.site.settings import Settings


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
def copied_lab(lab_folder, tmp_path):
    """A lab that a test may change."""
    return shutil.copytree(lab_folder, tmp_path / "lab")
