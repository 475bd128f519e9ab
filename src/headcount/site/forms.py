"""What visitors may send, by page or by API: one model each, and all faults at once."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
)

from headcount.site.clock import parse_local, zone
from headcount.site.errors import FaultyError
from headcount.site.texts import Email, Line, LongText, Name, Password, Secret, Tags

Model = TypeVar("Model", bound=BaseModel)
Scope = Literal["read", "submit", "organise"]


def _in_reach(moment: datetime) -> datetime:
    if not 2000 <= moment.year <= 2200:
        raise ValueError("must lie between the years 2000 and 2200")
    return moment.astimezone(UTC)


When = Annotated[AwareDatetime, AfterValidator(_in_reach)]


class Form(BaseModel):
    """Base: nothing unknown is taken."""

    model_config = ConfigDict(extra="forbid")


class Registration(Form):
    """A new user."""

    name: Name
    password: Password
    email: Email = ""
    invitation: Secret = ""


class Credentials(Form):
    """A name and its password."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    password: Annotated[str, Field(min_length=1, max_length=200)]


class NewPassword(Form):
    """A new password, by a code from the organisers."""

    code: Secret
    password: Password


class TeamName(Form):
    """A new team."""

    name: Name


class Code(Form):
    """A code that opens something."""

    code: Secret


class TokenRequest(Form):
    """A new token."""

    name: Name = "token"
    scopes: Annotated[list[Scope], Field(min_length=1)] = ["read", "submit"]
    days: Annotated[int, Field(ge=1, le=366)] = 90


class TokenByPassword(Credentials):
    """A new token for whoever knows the password."""

    label: Name = "token"
    scopes: Annotated[list[Scope], Field(min_length=1)] = ["read", "submit"]
    days: Annotated[int, Field(ge=1, le=366)] = 90


class Describing(Form):
    """What a run is."""

    description: LongText = ""
    tags: Tags = ""


class UploadFields(Describing):
    """What comes with a run."""

    phase: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    baseline: Name | None = None
    key: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{8,64}$")] | None = None


class LabRules(Form):
    """Rules of the lab."""

    title: Annotated[Line, Field(min_length=1)]
    about: LongText = ""
    registration: Literal["open", "invitation", "closed"] = "open"
    approval: bool = False
    anonymous: bool = False
    timezone: str = "UTC"
    contact: Line = ""

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, value: str) -> str:
        zone(value)
        return value


class PhaseRules(Form):
    """Rules of a phase."""

    name: Name
    split: Literal["dev", "test"] = "test"
    opens_at: When
    closes_at: When | None = None
    hidden: bool = False
    publish_at: When | None = None
    details: bool = False
    quota_day: Annotated[int, Field(ge=1, le=100_000)] | None = None
    quota_total: Annotated[int, Field(ge=1, le=100_000)] | None = None
    counts: Literal["last", "best", "chosen"] = "best"


class Text(Form):
    """A text for everyone."""

    text: Annotated[LongText, Field(min_length=1)]


class InvitationRequest(Form):
    """An invitation."""

    role: Literal["participant", "organiser"] = "participant"
    uses: Annotated[int, Field(ge=1, le=1000)] = 1
    days: Annotated[int, Field(ge=1, le=366)] = 30
    note: Line = ""


class State(Form):
    """What becomes of a team or a user."""

    state: Literal["active", "removed"]


class Reference(Form):
    """Whose published results stand beside a board."""

    reference: Annotated[str, Field(max_length=60)] | None = None


def parse(model: type[Model], values: Mapping[str, Any]) -> Model:
    """A model from a form's values; an error that lists every fault in words."""
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        faults = [fault_text(dict(each)) for each in error.errors()]
    raise FaultyError("please mend this and send it again.", faults)


def fault_text(fault: Mapping[str, Any]) -> str:
    """A fault in words; never with the value, which may be a password."""
    where = [str(part) for part in fault["loc"] if part not in ("body", "query", "path")]
    text = str(fault["msg"]).removeprefix("Value error, ")
    return f"{'.'.join(where)}: {text}" if where else text


def parse_phase(values: Mapping[str, Any], timezone: str) -> dict[str, Any]:
    """Rules of a phase from a page, whose times are those of the lab's zone."""
    raw: dict[str, Any] = {name: value for name, value in values.items() if value not in ("", None)}
    faults = []
    for name in ("opens_at", "closes_at", "publish_at"):
        try:
            raw[name] = parse_local(str(values.get(name, "")), timezone)
        except (ValueError, OverflowError) as error:
            faults.append(f"{name}: {error}")
            raw.pop(name, None)
    if raw.get("opens_at") is None and not faults:
        faults.append("opens_at: say when the phase opens")
    if faults:
        raise FaultyError("please mend this and send it again.", faults)
    return parse(PhaseRules, raw).model_dump()
