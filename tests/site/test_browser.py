"""The whole story of a small lab in a real browser, with scripts and without."""

import os
import re
import shutil
import subprocess
import tarfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from serving import PASSWORD, Server

from headcount.site.accounts import add_user
from headcount.site.clock import now
from headcount.site.database import Database

CACHE = Path(__file__).resolve().parents[2] / ".venv-site" / "npm"
PICTURES = os.environ.get("HEADCOUNT_TEST_PICTURES")


@pytest.fixture(scope="session")
def chromium():
    """Debian's browser."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("chromium is not installed: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def axe():
    """Text of axe-core, from npm."""
    script = CACHE / "package" / "axe.min.js"
    if not script.is_file():
        if shutil.which("npm") is None:
            pytest.skip("npm is not installed, which axe-core comes from")
        CACHE.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            ["npm", "pack", "axe-core@4"], cwd=CACHE, capture_output=True, text=True
        )
        if done.returncode:
            pytest.skip(f"axe-core cannot be had from npm: {done.stderr[-200:]}")
        with tarfile.open(next(CACHE.glob("axe-core-*.tgz"))) as archive:
            archive.extractall(CACHE, filter="data")
    return script.read_text()


@pytest.fixture
def server(lab_folder, tmp_path):
    made = Server(lab_folder, tmp_path / "served").start()
    database = Database(made.database_url)
    with database.writing() as session:
        add_user(session, now(), name="boss", password=PASSWORD, role="organiser")
    database.close()
    yield made
    made.kill()


class Visitor:
    """A person with a browser; whatever goes wrong in it fails the test."""

    def __init__(self, browser, server, axe=None, **context):
        self.context = browser.new_context(bypass_csp=False, **context)
        self.page = self.context.new_page()
        self.server = server
        self.axe = axe
        self.faults = []
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))

    def _hear(self, message):
        refused = "the server responded with a status of 4" in message.text
        if message.type in ("error", "warning") and not refused:
            self.faults.append(message.text)

    def go(self, path):
        self.page.goto(self.server.url + path)
        return self

    def fill(self, **fields):
        for name, value in fields.items():
            self.page.fill(f"[name={name}]", value)
        return self

    def press(self, text, stays=False):
        button = self.page.get_by_role("button", name=text, exact=True)
        if stays:  # htmx changes a part of the page, and its address
            button.click()
            self.page.wait_for_url("**run=*")
        else:
            with self.page.expect_navigation():
                button.click()
        self.page.wait_for_load_state("networkidle")
        return self

    def text(self):
        return self.page.inner_text("main")

    def log_in(self, name):
        self.go("/login").fill(name=name, password=PASSWORD)
        return self.press("Log in")

    def join(self, name, team):
        self.go("/register").fill(name=name, password=PASSWORD).press("Register")
        self.page.fill("form[action='/team'] [name=name]", team)
        return self.press("Create")

    def upload(self, path, task="T1A", **fields):
        self.go(f"/tasks/{task}")
        self.page.set_input_files("[name=file]", path)
        self.fill(**fields)
        return self.press("Check and score")

    def look(self, name):
        """A picture, a check by axe-core, and nothing wrong in the console."""
        assert not self.faults, self.faults
        weight = self.page.evaluate(
            "() => performance.getEntriesByType('resource').concat("
            "performance.getEntriesByType('navigation'))"
            ".reduce((sum, e) => sum + (e.encodedBodySize || 0), 0)"
        )
        assert weight < 100_000, (name, weight)
        wide = self.page.evaluate(
            "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert wide <= 0, f"{name} scrolls sideways by {wide} pixels"
        if self.axe:
            found = self.page.evaluate(
                f"async () => {{ {self.axe}; return (await axe.run()).violations.map("
                "v => [v.id, v.impact, v.nodes.map(n => n.html).slice(0, 3)]) }"
            )
            assert not [v for v in found if v[1] in ("serious", "critical")], (name, found)
        if PICTURES:
            Path(PICTURES).mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=Path(PICTURES) / f"{name}.png", full_page=True)
        return self


def local(moment):
    return moment.strftime("%Y-%m-%dT%H:%M:%S")


def test_the_story_of_a_lab(chromium, server, axe, runs_folder):
    boss = Visitor(chromium, server, axe)
    boss.go("/").look("empty-home").go("/login").look("login")
    boss.fill(name="boss", password="wrong password").press("Log in")
    assert "wrong" in boss.text()
    boss.log_in("boss").go("/organise").look("organise")
    boss.page.fill("#f-title", "LeQua at home")
    boss.page.fill("#f-about", "A small lab.\nTwo teams.")
    boss.press("Save the rules")
    day = timedelta(days=1)
    today = datetime.now(UTC)
    boss.go("/organise/phases/new").look("phase")
    boss.fill(name="Test", opens_at=local(today - day), closes_at=local(today - 2 * day))
    boss.press("Save")
    assert "closes before it opens" in boss.text()
    boss.fill(closes_at=local(today + day), quota_total="2").page.check("[name=hidden]")
    boss.page.select_option("[name=counts]", "chosen")
    boss.press("Save")
    boss.go("/organise").page.fill("#f-text", "Welcome <b>all</b>")
    boss.press("Announce")

    ann = Visitor(chromium, server, axe, viewport={"width": 390, "height": 800})
    ann.go("/register").look("register-phone").join("ann", "Alpha <i>team</i>").look("team-phone")
    ben = Visitor(chromium, server, axe, color_scheme="dark").join("ben", "Beta").look("team-dark")
    ann.go("/").look("home-phone").go("/tasks/T1A").look("task-phone")
    assert "Welcome <b>all</b>" in ben.go("/").look("home-dark").text()

    ann.page.goto(f"{server.url}/tasks/T1A")
    ann.page.select_option("[name=phase]", label="Development (dev samples)")
    ann.page.set_input_files("[name=file]", runs_folder / "faulty.csv")
    ann.press("Check and score").look("faulty-phone")
    assert "line 4, column 0" in ann.text()
    for person, quality in ((ann, "good"), (ben, "middle")):
        person.go("/tasks/T1A").page.select_option("[name=phase]", "1")
        person.page.set_input_files("[name=file]", runs_folder / f"T1A-dev-{quality}.csv")
        person.fill(tags="SLD, bcts", description="A *first* try").press("Check and score")
    assert re.search(r"Rank\s+1 of 1", ann.text()), ann.text()
    assert re.search(r"Rank\s+2 of 2", ben.text()), ben.text()
    ann.look("run-phone")
    ben.look("run-dark").go("/runs").look("runs-dark")
    ben.go("/tasks/T1A/boards/1").look("board-dark")
    before = ben.page.url
    ben.page.get_by_role("link", name="AE", exact=True).click()
    ben.page.wait_for_url("**sort=ae**")
    assert ben.page.url != before and ben.page.locator("th[aria-sort]").inner_text().startswith(
        "AE"
    )
    ben.page.get_by_label("Plot Beta").check()
    ben.press("Plot the chosen runs", stays=True).look("compared-dark")
    ann.go("/tasks/T1A/boards/1").look("board-phone")

    boss.go("/organise").press("Freeze Development")
    ann.upload(runs_folder / "T1A-test-good.csv")
    assert "hidden" in ann.text()
    ann.look("hidden-run-phone").press("Let this run count")
    ben.upload(runs_folder / "T1A-test-bad.csv").upload(runs_folder / "T1A-test-middle.csv")
    ben.upload(runs_folder / "T1A-test-good.csv")
    assert "are used" in ben.text()
    ben.go("/tasks/T1A/boards/2").look("refused-dark")
    assert "not published" in ben.text()
    boss.go("/tasks/T1A/boards/2").look("organisers-board")
    boss.go("/organise").press("Freeze Test")
    ben.go("/tasks/T1A")
    assert "No phase is open now" in ben.text()
    boss.go("/organise").press("Publish Test")
    guest = Visitor(chromium, server, axe, viewport={"width": 1600, "height": 900})
    guest.go("/tasks/T1A/boards/2").look("published-wide")
    rows = guest.page.locator("#board tbody tr").all_inner_texts()
    assert "Alpha" in rows[0] and "Beta" in rows[1]
    guest.page.get_by_role("link", name="Beta").click()
    guest.page.wait_for_url("**/teams/*")
    guest.look("history-wide")
    for path in ("people", "log"):
        boss.go(f"/organise/{path}").look(path)
    boss.go("/tokens").press("Make it").look("tokens")
    guest.go("/api").look("api-wide").go("/reset").look("reset").go("/nowhere")
    assert "did not work" in guest.text()
    with boss.page.expect_download() as download:
        boss.go("/organise").page.get_by_role("link", name="Export everything").click()
    assert Path(download.value.path()).read_bytes()[:2] == b"PK"


def test_everything_works_without_scripts(chromium, server, runs_folder):
    cleo = Visitor(chromium, server, java_script_enabled=False).join("cleo", "Gamma")
    cleo.upload(runs_folder / "faulty.csv")
    assert "line 4, column 0" in cleo.text()
    cleo.upload(runs_folder / "T1A-dev-good.csv", description="no scripts")
    assert re.search(r"Rank\s+1 of 1", cleo.text())
    cleo.go("/tasks/T1A/boards/1").page.get_by_role("link", name="AE", exact=True).click()
    cleo.page.wait_for_url("**sort=ae*")
    cleo.page.get_by_label("Plot Gamma").check()
    cleo.press("Plot the chosen runs")
    assert cleo.page.locator("figure").count() == 2
    cleo.go("/runs/1").press("Withdraw this run")
    assert "withdrawn" in cleo.text()
    cleo.press("Log out")
    assert cleo.page.get_by_role("link", name="Log in").count() == 1


def test_the_keyboard_is_enough(chromium, server):
    page = Visitor(chromium, server).go("/login").page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.name") == "name":
            break
    page.keyboard.type("boss")
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    with page.expect_navigation():
        page.keyboard.press("Enter")
    page.get_by_role("button", name="Log out").wait_for()


def test_nothing_moves_while_a_board_loads(chromium, server, runs_folder):
    dora = Visitor(chromium, server).join("dora", "Delta")
    dora.upload(runs_folder / "T1A-dev-good.csv")
    dora.page.add_init_script(
        "window.moved = 0; new PerformanceObserver(list => { for (const e of list.getEntries()) "
        "if (!e.hadRecentInput) window.moved += e.value; })"
        ".observe({type: 'layout-shift', buffered: true});"
    )
    for path in ("/tasks/T1A/boards/1", "/runs/1", "/"):
        dora.go(path).page.wait_for_load_state("networkidle")
        assert dora.page.evaluate("window.moved") < 0.01, path
