"""`read`: text of a file, whole or in pages; the entries of a directory; an image."""

import asyncio
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, RootModel

from fairlead_schema.tools.content import FileContent, Json, TextContent, ToolContent
from fairlead_service.config.sections import ToolsConfig
from fairlead_session.calls.output_bounds import OutputLimits
from fairlead_session.people.permission import Need
from fairlead_tools.builtin.reach import reached, saying, sought
from fairlead_tools.files import kind, pages
from fairlead_tools.files.directory import Kind, listing
from fairlead_tools.files.image import SOURCE_BYTES_MAX, ImageLimits, ImageRefused, Picture, normal
from fairlead_tools.files.outputs import NoOutputs, Outputs
from fairlead_tools.files.pages import PAGE_BYTES_MAX, PAGE_LINES_MAX, Binary, OutOfRange
from fairlead_tools.files.path import Place, authority, opened, resolve
from fairlead_tools.registry.tool import CallFailed, Context, Result, Tool

ACTION: Final = "read"
# What is said about a page: where it goes on, and which of its lines were cut.
NOTES: Final = 2_048
DESCRIPTION: Final = (
    "Reads a file or lists a directory. Relative paths start at the working directory. Long text "
    "comes in pages: continue with the offset that the page names. Images are shown as such."
)


class ReadInput(BaseModel):
    """What to read."""

    model_config = ConfigDict(extra="forbid")

    path: str = Field(description="The file or directory, relative to the working directory")
    offset: int | None = Field(default=None, ge=1, description="First line or entry, from 1")
    limit: int | None = Field(
        default=None, ge=1, le=PAGE_LINES_MAX, description="Number of lines or entries"
    )


def _absent(value: object) -> bool:
    return value is None


Next: TypeAlias = Annotated[int | None, Field(exclude_if=_absent)]


class WholeText(BaseModel):
    """A whole text file."""

    path: str
    uri: str
    name: str
    content: str
    encoding: Literal["utf8"] = "utf8"
    mime: str


class TextPage(BaseModel):
    """Some lines of a text file."""

    type: Literal["text-page"] = "text-page"
    path: str
    content: str
    mime: str
    offset: int
    truncated: bool
    next: Next = None


class Entry(BaseModel):
    """One entry of a directory; the name of a directory ends with a slash."""

    name: str
    type: Kind


class DirectoryPage(BaseModel):
    """Some entries of a directory."""

    type: Literal["directory-page"] = "directory-page"
    path: str
    entries: tuple[Entry, ...]
    offset: int
    truncated: bool
    next: Next = None


class ImageFile(BaseModel):
    """An image; its bytes are with the model alone."""

    type: Literal["image"] = "image"
    path: str
    uri: str
    name: str
    mime: str


class ReadOutput(RootModel[TextPage | DirectoryPage | ImageFile | WholeText]):
    """What was read."""


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads with these limits; managed outputs come from `outputs`."""

    limits: ImageLimits
    outputs: Outputs

    async def needs(self, asked: ReadInput, context: Context) -> tuple[Need, ...]:
        if self.outputs.owns(asked.path):
            return (Need(ACTION, (asked.path,), ("*",)),)
        with saying(f"Unable to read {asked.path}"):
            place = await sought(context, asked.path)
            if place.root is not None:
                await asyncio.to_thread(place.path.lstat)
        return (*authority(place), Need(ACTION, (place.resource,), ("*",)))

    async def execute(self, asked: ReadInput, context: Context) -> Result:
        if not self.outputs.owns(asked.path):
            with saying(f"Unable to read {asked.path}"):
                place = await reached(context, asked.path, ACTION)
                return await asyncio.to_thread(self._read, place, place.resource, asked)
        async with self.outputs.local(asked.path, context) as local:
            if local is None:
                raise CallFailed(f"Unable to read {asked.path}")
            place = await asyncio.to_thread(resolve, str(local.parent), local.name)
            return await asyncio.to_thread(self._read, place, asked.path, asked)

    def _read(self, place: Place, told: str, asked: ReadInput) -> Result:
        with opened(place) as (descriptor, status):
            if stat.S_ISDIR(status.st_mode):
                return Result(_directory(descriptor, place.path, told, asked))
            with open(descriptor, "rb", closefd=False) as file:
                return self._file(file, place, told, asked)

    def _file(self, file: BinaryIO, place: Place, told: str, asked: ReadInput) -> Result:
        head = file.read(kind.HEAD)
        file.seek(0)
        mime = kind.image(head)
        if mime is not None:
            picture = self._picture(file, mime, asked.path)
            return _image(picture, place, told)
        if kind.binary(place.path.name, head):
            raise CallFailed(f"Cannot read binary file: {asked.path}")
        try:
            return Result(_text(file, place, told, asked))
        except Binary as error:
            raise CallFailed(f"Cannot read binary file: {asked.path}") from error
        except (UnicodeDecodeError, OutOfRange) as error:
            raise CallFailed(f"Unable to read {asked.path}") from error

    def _picture(self, file: BinaryIO, mime: str, path: str) -> Picture:
        raw = file.read(SOURCE_BYTES_MAX + 1)
        if len(raw) > SOURCE_BYTES_MAX:
            raise CallFailed(f"Image exceeds {SOURCE_BYTES_MAX >> 20} MiB: {path}")
        try:
            return normal(raw, mime, self.limits)
        except ImageRefused as error:
            raise CallFailed(f"{error}: {path}") from error


def shown(settings: ToolsConfig) -> OutputLimits | None:
    """How much of it the model sees: a page whole, unless less than that is configured."""
    less = settings.output_bytes_max < PAGE_BYTES_MAX or settings.output_lines_max < PAGE_LINES_MAX
    return (
        None if less else OutputLimits(lines=PAGE_BYTES_MAX + NOTES, bytes=PAGE_BYTES_MAX + NOTES)
    )


def tool(
    limits: ImageLimits | None = None,
    outputs: Outputs | None = None,
    page: OutputLimits | None = None,
) -> Tool:
    """The tool, with its limits and with the store of managed outputs, if there is one."""
    reader = Reader(limits or ImageLimits(), outputs or NoOutputs())
    return Tool(
        name="read",
        description=DESCRIPTION,
        input=ReadInput,
        output=ReadOutput,
        execute=reader.execute,
        needs=reader.needs,
        project=project,
        retry="pure",
        limits=page,
    )


def project(read: Json) -> tuple[ToolContent, ...]:
    """The text itself, with a note on where it goes on."""
    match read:
        case {"type": "directory-page", "entries": entries}:
            text = "\n".join(entry["name"] for entry in entries) or "(The directory is empty)"
        case {"content": content}:
            text = content or "(The file is empty)"
        case _:
            raise AssertionError("an image brings its content")
    if read.get("next") is not None:
        text += f"\n\n(There is more: continue with offset {read['next']})"
    return (TextContent(text=text),)


def _directory(descriptor: int, path: Path, told: str, asked: ReadInput) -> DirectoryPage:
    try:
        page = listing(descriptor, path, asked.offset or 1, asked.limit or PAGE_LINES_MAX)
    except OutOfRange as error:
        raise CallFailed(f"Unable to read {asked.path}") from error
    return DirectoryPage(
        path=told,
        entries=tuple(Entry(name=name, type=type_) for name, type_ in page.entries),
        offset=page.offset,
        truncated=page.next is not None,
        next=page.next,
    )


def _text(file: BinaryIO, place: Place, told: str, asked: ReadInput) -> WholeText | TextPage:
    mime = kind.text(place.path.name)
    if asked.offset is None and asked.limit is None:
        content = pages.whole(file)
        if content is not None:
            return WholeText(content=content, mime=mime, **_named(place, told))
    page = pages.page(file, asked.offset or 1, asked.limit or PAGE_LINES_MAX)
    return TextPage(
        path=told,
        content=page.content,
        mime=mime,
        offset=page.offset,
        truncated=page.truncated,
        next=page.next,
    )


def _image(picture: Picture, place: Place, told: str) -> Result:
    output = ImageFile(mime=picture.mime, **_named(place, told))
    said = TextContent(text=f"The image {output.name} is shown below.")
    shown = FileContent(uri=picture.uri, mime=picture.mime, name=output.name)
    return Result(output, (said, shown))


def _named(place: Place, told: str) -> dict[str, Any]:
    name = os.fsencode(place.path.name).decode(errors="replace")
    return {"path": told, "uri": place.path.as_uri(), "name": name}
