"""Settings, migrations, backups, health, metrics, logs, commands."""

import json
import logging
import re
import zipfile
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from people import Person
from sqlalchemy import inspect, select, text
from typer.testing import CliRunner

from headcount.cli.app import app
from headcount.exceptions import InputError
from headcount.site import guard
from headcount.site.backup import back_up, restore
from headcount.site.context import Site
from headcount.site.database import Database, migrate
from headcount.site.lab import open_lab
from headcount.site.models import Base, Lab, Run, User
from headcount.site.settings import Settings, read_settings

ROOT = Path(__file__).resolve().parents[2]


def test_settings_come_from_file_environment_and_command(tmp_path):
    file = tmp_path / "site.toml"
    file.write_text('lab = "a"\ndata = "b"\nport = 1\nworkers = 2\n')
    environ = {"HEADCOUNT_SITE_PORT": "3", "HEADCOUNT_SITE_WORKERS": "4", "OTHER": "x"}
    settings = read_settings({"workers": 5, "host": None}, file, environ)
    assert (settings.port, settings.workers, settings.lab) == (3, 5, Path("a"))


def test_every_fault_of_the_settings_is_told_at_once_without_passwords(tmp_path):
    file = tmp_path / "site.toml"
    file.write_text('port = "x"\nworker = 1\ndatabase = "mysql://u:hunter2@h/d"\nurl = "lab"\n')
    with pytest.raises(InputError) as caught:
        read_settings({}, file, {})
    message = str(caught.value)
    for name in ("lab:", "data:", "port:", "worker:", "database:", "url:"):
        assert name in message, name
    assert "6 faults" in message and "hunter2" not in message
    file.write_text("port = = 1")
    with pytest.raises(InputError, match="not TOML"):
        read_settings({}, file, {})
    with pytest.raises(InputError, match="cannot read"):
        read_settings({}, tmp_path / "none.toml", {})


def test_every_setting_is_documented():
    text = (ROOT / "docs" / "site.md").read_text()
    for name, field in Settings.model_fields.items():
        assert f"`{name}`" in text, name
        assert field.description, name


def test_a_lab_with_faults_is_not_served(copied_lab, tmp_path):
    (copied_lab / "gold" / "T1A" / "test_prevalences.txt").unlink()
    (copied_lab / "T3" / "task.json").write_text("{}")
    with pytest.raises(InputError) as caught:
        open_lab(copied_lab, tmp_path / "data")
    assert "T1A: the truth about the test samples is missing" in str(caught.value)
    assert "T3: " in str(caught.value)
    with pytest.raises(InputError, match="no task"):
        open_lab(tmp_path / "nothing", tmp_path / "data")


def test_migrations_reach_the_models_from_the_first_version(database_url):
    database = Database(database_url)
    migrate(database, "0001")
    with database.engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO lab (id, title, about, registration, approval, anonymous, timezone) "
                "VALUES (1, 'kept', '', 'open', :no, :no, 'UTC')"
            ),
            {"no": False},
        )
    migrate(database)
    migrate(database)
    with database.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []
        names = set(inspect(connection).get_table_names())
    assert names == {*Base.metadata.tables, "alembic_version"}
    with database.reading() as session:
        assert session.get_one(Lab, 1).title == "kept"
        assert session.get_one(Lab, 1).contact == ""
    database.close()


def test_sqlite_keeps_foreign_keys_and_a_write_ahead_log(tmp_path):
    database = Database(f"sqlite:///{tmp_path / 'x.db'}")
    migrate(database)
    with database.engine.connect() as connection:
        assert connection.execute(text("PRAGMA journal_mode")).scalar() == "wal"
        assert connection.execute(text("PRAGMA foreign_keys")).scalar() == 1
        assert connection.execute(text("PRAGMA synchronous")).scalar() == 2
    database.close()


def test_a_backup_moves_a_site_to_the_other_database(
    site, alice, runs_folder, tmp_path, lab_folder, request
):
    run = alice.run_id(alice.upload(runs_folder / "T1A-dev-good.csv"))
    back_up(site.database, tmp_path / "backup.zip")
    with pytest.raises(InputError, match="exists"):
        back_up(site.database, tmp_path / "backup.zip")
    if site.database.is_sqlite:
        server = request.getfixturevalue("postgres")
        url = server.url(server.create())
    else:
        url = f"sqlite:///{tmp_path / 'moved.db'}"
    target = Database(url)
    restore(tmp_path / "backup.zip", target)
    with pytest.raises(InputError, match="not empty"):
        restore(tmp_path / "backup.zip", target)
    target.close()
    moved = Site(Settings(lab=lab_folder, data=tmp_path / "moved", database=url), site.clock)
    moved.prepare()
    again = Person(moved)
    assert again.log_in("alice").status_code == 303
    assert again.get(f"/runs/{run}/file").content == alice.get(f"/runs/{run}/file").content
    assert again.run_id(again.upload(runs_folder / "T1A-dev-bad.csv")) > run
    moved.close()


def test_damaged_backups_are_refused(site, tmp_path):
    back_up(site.database, tmp_path / "good.zip")
    with zipfile.ZipFile(tmp_path / "good.zip") as archive:
        manifest, tables = archive.read("manifest.json"), archive.read("site.db")
    with zipfile.ZipFile(tmp_path / "bad.zip", "w") as archive:
        archive.writestr("manifest.json", manifest)
        archive.writestr("site.db", tables[:-10] + b"0123456789")
    target = Database(f"sqlite:///{tmp_path / 'new.db'}")
    with pytest.raises(InputError, match="damaged"):
        restore(tmp_path / "bad.zip", target)
    (tmp_path / "none.zip").write_bytes(b"nothing")
    with pytest.raises(InputError, match="not a backup"):
        restore(tmp_path / "none.zip", target)
    target.close()


def test_health_and_metrics(site, alice, runs_folder):
    assert alice.get("/healthz").json()["status"] == "ok"
    alice.upload(runs_folder / "T1A-dev-good.csv")
    alice.upload(runs_folder / "faulty.csv")
    assert alice.get("/metrics").status_code == 404, "not from afar"
    near = Person(site, client=("127.0.0.1", 1))
    text = near.get("/metrics").text
    assert re.search(r'headcount_uploads_total{result="scored"} [1-9]', text)
    assert re.search(r'headcount_uploads_total{result="faulty"} [1-9]', text)
    assert 'route="/tasks/{task}/runs"' in text
    assert near.get("/metrics", headers={"X-Forwarded-For": "1.2.3.4"}).status_code == 404


def test_metrics_with_a_token(make_site):
    person = Person(make_site(metrics_token="0123456789abcdef"))
    good, bad = ({"Authorization": f"Bearer {t}"} for t in ("0123456789abcdef", "wrong"))
    assert person.get("/metrics", headers=good).status_code == 200
    assert person.get("/metrics", headers=bad).status_code == 404


def test_the_log_is_json_lines():
    record = logging.LogRecord("headcount.site", logging.INFO, "f", 1, "request", (), None)
    record.fields = {"route": "/", "status": 200}
    line = json.loads(guard.JsonLines().format(record))
    assert line["event"] == "request" and line["route"] == "/" and line["level"] == "info"


def test_an_unforeseen_error_is_told_in_one_sentence(site, alice, monkeypatch):
    def broken(*args, **kwargs):
        raise RuntimeError("secret detail")

    monkeypatch.setattr("headcount.site.phases.list_phases", broken)
    person = Person(site)
    for path in ("/", "/api/v1/phases"):
        answer = person.get(path)
        assert answer.status_code == 500 and "secret detail" not in answer.text
        assert answer.headers["x-request-id"] in answer.text
        assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_the_stylesheet_and_the_scripts(visit):
    page = visit().get("/")
    css = re.search(r'href="(/static/site\.css\?v=\w+)"', page.text)[1]
    script = re.search(r'src="(/static/htmx\.min\.js\?v=\w+)"', page.text)[1]
    assert len(visit().get(css).content) < 20_000
    assert "immutable" in visit().get(script).headers["cache-control"]
    licence = ROOT / "src" / "headcount" / "site" / "static" / "htmx.LICENSE"
    assert "Zero-Clause BSD" in licence.read_text()
    sources = [*(ROOT / "src/headcount/site/templates").glob("*.html")]
    for path in sources:
        assert not re.search(r"https?://(?!{{)", path.read_text()), path
        assert "|safe" not in path.read_text(), path


def test_administration_from_the_terminal(tmp_path, lab_folder, runs_folder):
    data = str(tmp_path / "site")
    call = CliRunner().invoke
    made = call(app, ["lab", "admin", "organiser", "boss", "--data", data, "--stdin"], input="x\n")
    assert made.exit_code and "10 characters" in str(made.exception.faults)
    made = call(
        app, ["lab", "admin", "organiser", "boss", "--data", data, "--stdin"], input="y" * 12 + "\n"
    )
    assert made.exit_code == 0, made.output
    site = Site(Settings(lab=lab_folder, data=Path(data)))
    site.prepare()
    code = call(app, ["lab", "admin", "invite", "--data", data]).output.strip()
    ann = Person(site).register("ann", "Team", invitation=code)
    ann.run_id(ann.upload(runs_folder / "T1A-dev-good.csv"))
    code = call(app, ["lab", "admin", "reset", "ann", "--data", data]).output.strip()
    assert Person(site).send("/reset", code=code, password="z" * 12).status_code == 303
    assert call(app, ["lab", "admin", "reset", "nobody", "--data", data]).exit_code
    words = ["lab", "admin", "rescore", "T1A", str(runs_folder / "T1A-dev-good.csv")]
    words += ["--note", "typo", "--split", "dev", "--data", data, "--lab", str(lab_folder)]
    done = call(app, words)
    assert "1 runs scored again" in done.output, done.exception
    backup = str(tmp_path / "b.zip")
    assert "1 runs" in call(app, ["lab", "admin", "backup", backup, "--data", data]).output
    new = str(tmp_path / "new")
    assert "1 runs" in call(app, ["lab", "admin", "restore", backup, "--data", new]).output
    missing = call(app, ["lab", "admin", "backup", "c.zip", "--data", str(tmp_path / "no")])
    assert "no site" in str(missing.exception)
    site.close()


def test_the_first_start_can_be_tried_at_once(make_site, visit):
    page = visit().get("/").text
    assert "Development" in page and "T1A" in page


def test_a_new_task_joins_a_running_lab(make_site, copied_lab, alice, runs_folder):
    alice.run_id(alice.upload(runs_folder / "T1A-dev-good.csv"))
    (copied_lab / "T1A").rename(copied_lab / "T9")
    (copied_lab / "gold" / "T1A").rename(copied_lab / "gold" / "T9")
    site = make_site(lab=copied_lab)
    assert Person(site).get("/tasks/T9").status_code == 200
    assert Person(site).get("/tasks/T1A").status_code == 404
    with site.database.reading() as session:
        assert len(session.scalars(select(Run)).all()) == 1
        assert len(session.scalars(select(User)).all()) == 1
