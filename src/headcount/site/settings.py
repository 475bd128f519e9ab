"""What the server needs to know to start: from a TOML file, the environment and the command."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from headcount.exceptions import InputError

PREFIX = "HEADCOUNT_SITE_"


class Settings(BaseModel):
    """Settings of one server; organisers set the rules of the lab on its pages instead.

    Each can be given in a TOML file by its name, or in the environment as ``HEADCOUNT_SITE_`` and
    its name in capitals. The environment wins over the file, and the command over both.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    lab: Path = Field(description="folder of the tasks, as `headcount lequa build` makes it")
    data: Path = Field(description="folder for the database and what the site keeps")
    database: str | None = Field(None, description="postgresql://...; SQLite in data by default")
    host: str = Field("127.0.0.1", description="address to listen on")
    port: int = Field(8000, ge=0, le=65535, description="port to listen on; 0: any free one")
    workers: int = Field(1, ge=1, le=64, description="processes")
    url: str = Field("http://127.0.0.1:8000", description="address that participants see")
    proxies: str = Field("127.0.0.1", description="addresses whose X-Forwarded-For is believed")
    upload_bytes: int = Field(10_000_000, ge=1000, description="largest upload")
    unpacked_bytes: int = Field(40_000_000, ge=1000, description="largest run, unpacked")
    body_seconds: float = Field(60.0, gt=0, description="time that a request has to arrive")
    logins_per_minute: int = Field(10, ge=1, description="tries to log in, by name and by address")
    uploads_per_minute: int = Field(30, ge=1, description="uploads of a team, faulty ones too")
    session_hours: float = Field(72.0, gt=0, description="how long a log-in lasts")
    stop_seconds: int = Field(20, ge=1, description="time to finish requests when stopped")
    metrics_token: str | None = Field(None, min_length=16, description="opens /metrics from afar")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="logging")

    @field_validator("url")
    @classmethod
    def _plain_url(cls, value: str) -> str:
        if not value.startswith(("http://", "https://")):
            raise ValueError("must start with http:// or https://")
        return value.rstrip("/")

    @field_validator("database")
    @classmethod
    def _known_database(cls, value: str | None) -> str | None:
        if value is None or value.startswith("sqlite:///"):
            return value
        scheme, _, rest = value.partition("://")
        if scheme not in ("postgresql", "postgres", "postgresql+psycopg") or not rest:
            raise ValueError("must be postgresql://user:password@host/name")
        return f"postgresql+psycopg://{rest}"

    @property
    def database_url(self) -> str:
        """Address of the database in SQLAlchemy's form."""
        return self.database or f"sqlite:///{self.data.absolute() / 'site.db'}"

    @property
    def secure(self) -> bool:
        """Whether participants come by https, so that cookies may travel by nothing else."""
        return self.url.startswith("https://")


def read_settings(
    given: Mapping[str, Any], file: Path | None = None, environ: Mapping[str, str] | None = None
) -> Settings:
    """Settings from the file, then the environment, then what was given; every fault at once.

    Examples
    --------
    >>> read_settings({"lab": "lab", "data": "site"}, environ={"HEADCOUNT_SITE_PORT": "8080"}).port
    8080
    >>> read_settings({"lab": "lab", "port": -1}, environ={"HEADCOUNT_SITE_WORKER": "4"})
    Traceback (most recent call last):
        ...
    headcount.exceptions.InputError: the settings have 3 faults:
    data: Field required
    port: Input should be greater than or equal to 0, got -1
    worker: there is no such setting
    """
    values: dict[str, Any] = {}
    if file is not None:
        try:
            values.update(tomllib.loads(file.read_text(encoding="utf-8")))
        except OSError as error:
            raise InputError(f"cannot read {str(file)!r}: {error.strerror}.") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InputError(f"{str(file)!r} is not TOML: {error}.") from None
    for name, value in (os.environ if environ is None else environ).items():
        if name.startswith(PREFIX):
            values[name.removeprefix(PREFIX).lower()] = value
    values.update({name: value for name, value in given.items() if value is not None})
    try:
        return Settings(**values)
    except ValidationError as error:
        faults = [_fault_text(dict(each)) for each in error.errors()]
    title = f"the settings have {len(faults)} fault{'s' if len(faults) > 1 else ''}:"
    raise InputError("\n".join([title, *faults]))


def _fault_text(fault: dict[str, Any]) -> str:
    name = ".".join(map(str, fault["loc"]))
    if fault["type"] == "extra_forbidden":
        return f"{name}: there is no such setting"
    text = str(fault["msg"]).removeprefix("Value error, ")
    if fault["type"] == "missing" or name in ("database", "metrics_token"):
        return f"{name}: {text}"  # what was got may hold a password
    return f"{name}: {text}, got {fault['input']!r}"
