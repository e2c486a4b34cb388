"""The base class of every part of the configuration, and the types that several parts use."""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict


class Section(BaseModel):
    """A frozen part of the configuration; an unknown key is a mistake."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def _check_absolute(path: str) -> str:
    """Refuse a relative path: each process would resolve it from a directory of its own."""
    expanded = str(Path(path).expanduser()) if path.startswith("~") else path
    if not expanded.startswith("/") or "\0" in expanded:
        raise ValueError(f"{path!r} is no absolute path: write the directory from / on")
    return expanded


Directory = Annotated[str, AfterValidator(_check_absolute)]
"""An absolute path. A leading `~` stands for the home directory of the process."""


def _split_names(value: object) -> object:
    return tuple(value.replace(",", " ").split()) if isinstance(value, str) else value


Names: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(_split_names)]
"""A list of names. An environment variable separates them by commas."""


def split_directories(value: str) -> tuple[str, ...]:
    """The directories in a variable: separated by colons as in `PATH`, or a JSON list."""
    if not value.startswith("["):
        return tuple(value.split(os.pathsep))
    items = json.loads(value)
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise ValueError("a JSON list of directories has texts only")
    return tuple(items)


def join_directories(directories: Iterable[str]) -> str:
    """The value of a variable that names these directories, also when a name contains a colon."""
    names = tuple(directories)
    plain = not any(os.pathsep in name or name.startswith("[") for name in names)
    return os.pathsep.join(names) if plain else json.dumps(names)
