"""Files of a location, for clients that show them to people: lists, searches and parts of a file."""

from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints

from fairlead_schema.location import LocationRef
from fairlead_schema.model import InputModel, Model

PART_BYTES_MAX: Final = 512 * 1024
"""One answer holds so many bytes of a file."""
FOUND_DEFAULT: Final = 100
FOUND_MAX: Final = 1000

FilePath = Annotated[str, StringConstraints(min_length=1, max_length=4096, pattern=r"^[^\x00]*$")]
"""A path relative to the location."""
EntryType = Literal["file", "directory"]


class _OfLocation(InputModel):
    location: LocationRef
    agent: str | None = None
    """Whose rules judge what may be read; the default agent's without one."""


class ListFiles(_OfLocation):
    """`file.list`: the entries of one directory."""

    path: FilePath = "."


class FindFiles(_OfLocation):
    """`file.find`: entries below the location that fit some letters, the best first."""

    query: Annotated[str, StringConstraints(min_length=1, max_length=256)]
    type: EntryType | None = None
    limit: Annotated[int, Field(ge=1, le=FOUND_MAX)] = FOUND_DEFAULT


class ReadFile(_OfLocation):
    """`file.read`: a part of one file, from an offset on."""

    path: FilePath
    offset: Annotated[int, Field(ge=0)] = 0


class FileEntry(Model):
    """A file or a directory, by its path relative to the location."""

    path: str
    type: EntryType


class FileEntries(Model):
    entries: tuple[FileEntry, ...]
    truncated: bool = False
    """Whether there are more than these."""


class FilePart(Model):
    """Some bytes of a file. Parts with the same version are parts of the same file."""

    path: str
    mime: str
    size: int
    version: str
    offset: int
    data: str
    """The bytes in Base64."""
