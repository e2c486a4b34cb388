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
from fairlead_tools.builtin.places import find_place, path_errors_as, permitted_place
from fairlead_tools.files import kind, pages
from fairlead_tools.files.directory import EntryKind, list_directory
from fairlead_tools.files.image import (
    SOURCE_BYTES_MAX,
    EncodedImage,
    ImageLimits,
    ImageRefused,
    fit_image,
)
from fairlead_tools.files.outputs import NoOutputFiles, OutputFiles
from fairlead_tools.files.pages import PAGE_BYTES_MAX, PAGE_LINES_MAX, Binary, OutOfRange
from fairlead_tools.files.path import Place, external_needs, open_place, resolve
from fairlead_tools.registry.tool import CallContext, CallFailed, Result, Tool

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


class DirectoryEntry(BaseModel):
    """One entry of a directory; the name of a directory ends with a slash."""

    name: str
    type: EntryKind


class DirectoryPage(BaseModel):
    """Some entries of a directory."""

    type: Literal["directory-page"] = "directory-page"
    path: str
    entries: tuple[DirectoryEntry, ...]
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
class ReadTool:
    """Reads with these limits; managed outputs come from `outputs`."""

    limits: ImageLimits
    outputs: OutputFiles

    async def needs(self, asked: ReadInput, context: CallContext) -> tuple[Need, ...]:
        if self.outputs.is_managed(asked.path):
            return (Need(ACTION, (asked.path,), ("*",)),)
        with path_errors_as(f"Unable to read {asked.path}"):
            place = await find_place(context, asked.path)
            if place.root is not None:
                await asyncio.to_thread(place.path.lstat)
        return (*external_needs(place), Need(ACTION, (place.resource,), ("*",)))

    async def execute(self, asked: ReadInput, context: CallContext) -> Result:
        if not self.outputs.is_managed(asked.path):
            with path_errors_as(f"Unable to read {asked.path}"):
                place = await permitted_place(context, asked.path, ACTION)
                return await asyncio.to_thread(self._read, place, place.resource, asked)
        async with self.outputs.open_file(asked.path, context) as local:
            if local is None:
                raise CallFailed(f"Unable to read {asked.path}")
            place = await asyncio.to_thread(resolve, str(local.parent), local.name)
            return await asyncio.to_thread(self._read, place, asked.path, asked)

    def _read(self, place: Place, told: str, asked: ReadInput) -> Result:
        with open_place(place) as (descriptor, status):
            if stat.S_ISDIR(status.st_mode):
                return Result(_directory(descriptor, place.path, told, asked))
            with open(descriptor, "rb", closefd=False) as file:
                return self._file(file, place, told, asked)

    def _file(self, file: BinaryIO, place: Place, told: str, asked: ReadInput) -> Result:
        head = file.read(kind.HEAD)
        file.seek(0)
        mime = kind.image_type(head)
        if mime is not None:
            picture = self._picture(file, mime, asked.path)
            return _image(picture, place, told)
        if kind.is_binary(place.path.name, head):
            raise CallFailed(f"Cannot read binary file: {asked.path}")
        try:
            return Result(_text(file, place, told, asked))
        except Binary as error:
            raise CallFailed(f"Cannot read binary file: {asked.path}") from error
        except (UnicodeDecodeError, OutOfRange) as error:
            raise CallFailed(f"Unable to read {asked.path}") from error

    def _picture(self, file: BinaryIO, mime: str, path: str) -> EncodedImage:
        raw = file.read(SOURCE_BYTES_MAX + 1)
        if len(raw) > SOURCE_BYTES_MAX:
            raise CallFailed(f"Image exceeds {SOURCE_BYTES_MAX >> 20} MiB: {path}")
        try:
            return fit_image(raw, mime, self.limits)
        except ImageRefused as error:
            raise CallFailed(f"{error}: {path}") from error


def page_limits(settings: ToolsConfig) -> OutputLimits | None:
    """How much of it the model sees: a page whole, unless less than that is configured."""
    less = settings.output_bytes_max < PAGE_BYTES_MAX or settings.output_lines_max < PAGE_LINES_MAX
    return (
        None if less else OutputLimits(lines=PAGE_BYTES_MAX + NOTES, bytes=PAGE_BYTES_MAX + NOTES)
    )


def tool(
    limits: ImageLimits | None = None,
    outputs: OutputFiles | None = None,
    page: OutputLimits | None = None,
) -> Tool:
    """The tool, with its limits and with the store of managed outputs, if there is one."""
    reader = ReadTool(limits or ImageLimits(), outputs or NoOutputFiles())
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
        page = list_directory(descriptor, path, asked.offset or 1, asked.limit or PAGE_LINES_MAX)
    except OutOfRange as error:
        raise CallFailed(f"Unable to read {asked.path}") from error
    return DirectoryPage(
        path=told,
        entries=tuple(DirectoryEntry(name=name, type=type_) for name, type_ in page.entries),
        offset=page.offset,
        truncated=page.next is not None,
        next=page.next,
    )


def _text(file: BinaryIO, place: Place, told: str, asked: ReadInput) -> WholeText | TextPage:
    mime = kind.text_type(place.path.name)
    if asked.offset is None and asked.limit is None:
        content = pages.read_whole(file)
        if content is not None:
            return WholeText(content=content, mime=mime, **_file_fields(place, told))
    page = pages.read_page(file, asked.offset or 1, asked.limit or PAGE_LINES_MAX)
    return TextPage(
        path=told,
        content=page.content,
        mime=mime,
        offset=page.offset,
        truncated=page.has_more,
        next=page.next,
    )


def _image(picture: EncodedImage, place: Place, told: str) -> Result:
    output = ImageFile(mime=picture.mime, **_file_fields(place, told))
    said = TextContent(text=f"The image {output.name} is shown below.")
    image = FileContent(uri=picture.uri, mime=picture.mime, name=output.name)
    return Result(output, (said, image))


def _file_fields(place: Place, told: str) -> dict[str, Any]:
    name = os.fsencode(place.path.name).decode(errors="replace")
    return {"path": told, "uri": place.path.as_uri(), "name": name}
