"""The context sources of a session: instructions, skills, references, the calendar."""

from typing import Annotated, Literal, Self
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from fairlead_service.config.section import Directory, Section

KIB = 1024


def _check_timezone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise ValueError(f"{name!r} is no time zone that this machine knows") from error
    return name


FileName = Annotated[str, StringConstraints(pattern=r"^[^/\x00]+$")]


class ContextConfig(Section):
    timeout_s: float = Field(default=3.0, gt=0)
    timezone: Annotated[str, AfterValidator(_check_timezone)] | None = None
    names: tuple[FileName, ...] = ("AGENTS.md",)
    global_file: str | None = "~/.config/fairlead/AGENTS.md"
    project: bool = True
    trust: Literal["all", "explicit"] = "all"
    trusted: tuple[Directory, ...] = ()
    instructions: tuple[str, ...] = ()
    file_bytes_max: int = Field(default=256 * KIB, gt=0)
    total_bytes_max: int = Field(default=512 * KIB, gt=0)
    fetch_timeout_s: float = Field(default=2.0, gt=0)
    watches_max: int = Field(default=8192, ge=0)
    refresh_s: float = Field(default=300.0, gt=0)
    cache: str = "~/.cache/fairlead"


class SkillsConfig(Section):
    config_directory: str | None = "~/.config/fairlead"
    project: bool = True
    sources: tuple[str, ...] = ()


class ReferenceConfig(Section):
    """A path outside the location or a text, and a sentence that says when it helps."""

    path: str | None = Field(default=None, min_length=1)
    text: str | None = Field(default=None, min_length=1, max_length=256 * KIB)
    description: str | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _has_one_content(self) -> Self:
        if (self.path is None) == (self.text is None):
            raise ValueError("a reference has either a `path` or a `text`")
        return self
