"""`read`: the text of a file, whole or in pages; the entries of a directory; an image."""

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
from fairlead_tools.builtin.input_paths import find_place, path_errors_as, permitted_place
from fairlead_tools.files import kind, pages
from fairlead_tools.files.directory import EntryKind, list_directory
from fairlead_tools.files.image import SOURCE_BYTES_MAX, EncodedImage, ImageLimits, ImageRefused
from fairlead_tools.files.image_process import fit_image_in_child
from fairlead_tools.files.outputs import NoOutputFiles, OutputFiles
from fairlead_tools.files.pages import PAGE_BYTES_MAX, PAGE_LINES_MAX, Binary, OutOfRange, TooFar
from fairlead_tools.files.path import Place, external_needs, open_place
from fairlead_tools.registry.tool import CallContext, CallFailed, Result, Tool

ACTION: Final = "read"
# Room for the notes on a page: where it continues, and which lines were cut.
NOTES: Final = 2_048
DESCRIPTION: Final = (
    "Reads a file or lists a directory. Relative paths start at the working directory. Long text "
    "comes in pages: continue with the offset that the page names. Images are shown as such."
)


class ReadInput(BaseModel):
    """The path and the page."""

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
    """An image. Its bytes are only in the content for the model."""

    type: Literal["image"] = "image"
    path: str
    uri: str
    name: str
    mime: str


class ReadOutput(RootModel[TextPage | DirectoryPage | ImageFile | WholeText]):
    """The text, the entries or the image."""


@dataclass(frozen=True, slots=True)
class ImageBytes:
    """An image as its file holds it."""

    mime: str
    raw: bytes


@dataclass(frozen=True, slots=True)
class ReadTool:
    """Reads files, directories and images, also managed outputs."""

    limits: ImageLimits
    outputs: OutputFiles

    async def needs(self, request: ReadInput, context: CallContext) -> tuple[Need, ...]:
        if self.outputs.is_managed(request.path):
            return (Need(ACTION, (request.path,), ("*",)),)
        with path_errors_as(f"Unable to read {request.path}"):
            place = await find_place(context, request.path)
            if place.root is not None:
                await asyncio.to_thread(place.path.lstat)
        return (*external_needs(place), Need(ACTION, (place.resource,), ("*",)))

    async def execute(self, request: ReadInput, context: CallContext) -> Result:
        if not self.outputs.is_managed(request.path):
            with path_errors_as(f"Unable to read {request.path}"):
                place = await permitted_place(context, request.path, ACTION)
                return await self._read(place, place.resource, request)
        async with self.outputs.open_file(request.path, context) as local:
            if local is None:
                raise CallFailed(f"Unable to read {request.path}")
            # The file is in the private directory, where the guard of paths lets no path lead.
            path = await asyncio.to_thread(local.resolve)
            place = Place(path, path.parent, path.parent, linked=False)
            return await self._read(place, request.path, request)

    async def _read(self, place: Place, path: str, request: ReadInput) -> Result:
        content = await asyncio.to_thread(_read_place, place, path, request)
        if isinstance(content, Result):
            return content
        try:
            picture = await fit_image_in_child(content.raw, content.mime, self.limits)
        except ImageRefused as error:
            raise CallFailed(f"{error}: {request.path}") from error
        return _image(picture, place, path)


def _read_place(place: Place, path: str, request: ReadInput) -> Result | ImageBytes:
    with open_place(place) as (descriptor, status):
        if stat.S_ISDIR(status.st_mode):
            return Result(_directory(descriptor, place.path, path, request))
        with open(descriptor, "rb", closefd=False) as file:
            return _read_file(file, place, path, request)


def _read_file(file: BinaryIO, place: Place, path: str, request: ReadInput) -> Result | ImageBytes:
    head = file.read(kind.HEAD)
    file.seek(0)
    mime = kind.image_type(head)
    if mime is not None:
        return ImageBytes(mime, _image_bytes(file, request.path))
    if kind.is_binary(place.path.name, head):
        raise CallFailed(f"Cannot read binary file: {request.path}")
    try:
        return Result(_text(file, place, path, request))
    except Binary as error:
        raise CallFailed(f"Cannot read binary file: {request.path}") from error
    except TooFar as error:
        raise CallFailed(f"{error}: {request.path}") from error
    except (UnicodeDecodeError, OutOfRange) as error:
        raise CallFailed(f"Unable to read {request.path}") from error


def _image_bytes(file: BinaryIO, path: str) -> bytes:
    raw = file.read(SOURCE_BYTES_MAX + 1)
    if len(raw) > SOURCE_BYTES_MAX:
        raise CallFailed(f"Image exceeds {SOURCE_BYTES_MAX >> 20} MiB: {path}")
    return raw


def settlement_limits(settings: ToolsConfig) -> OutputLimits | None:
    """The output limits for a whole page; None if the configured limits are smaller."""
    smaller = (
        settings.output_bytes_max < PAGE_BYTES_MAX or settings.output_lines_max < PAGE_LINES_MAX
    )
    return (
        None
        if smaller
        else OutputLimits(lines=PAGE_BYTES_MAX + NOTES, bytes=PAGE_BYTES_MAX + NOTES)
    )


def tool(
    *,
    image_limits: ImageLimits | None = None,
    outputs: OutputFiles | None = None,
    output_limits: OutputLimits | None = None,
) -> Tool:
    """The `read` tool. Without `outputs` it reads no managed outputs.

    `output_limits` bound the text of its settlement; None stands for the configured limits.
    """
    reader = ReadTool(image_limits or ImageLimits(), outputs or NoOutputFiles())
    return Tool(
        name="read",
        description=DESCRIPTION,
        input=ReadInput,
        output=ReadOutput,
        execute=reader.execute,
        needs=reader.needs,
        project=project,
        retry="pure",
        limits=output_limits,
    )


def project(output: Json) -> tuple[ToolContent, ...]:
    """The text, with a note on where it continues."""
    match output:
        case {"type": "directory-page", "entries": entries}:
            text = "\n".join(entry["name"] for entry in entries) or "(The directory is empty)"
        case {"content": content}:
            text = content or "(The file is empty)"
        case _:
            raise AssertionError("an image brings its content")
    if output.get("next") is not None:
        text += f"\n\n(There is more: continue with offset {output['next']})"
    return (TextContent(text=text),)


def _directory(descriptor: int, directory: Path, path: str, request: ReadInput) -> DirectoryPage:
    try:
        page = list_directory(
            descriptor, directory, request.offset or 1, request.limit or PAGE_LINES_MAX
        )
    except OutOfRange as error:
        raise CallFailed(f"Unable to read {request.path}") from error
    return DirectoryPage(
        path=path,
        entries=tuple(DirectoryEntry(name=name, type=type_) for name, type_ in page.entries),
        offset=page.offset,
        truncated=page.next is not None,
        next=page.next,
    )


def _text(file: BinaryIO, place: Place, path: str, request: ReadInput) -> WholeText | TextPage:
    mime = kind.text_type(place.path.name)
    if request.offset is None and request.limit is None:
        content = pages.read_whole(file)
        if content is not None:
            return WholeText(content=content, mime=mime, **_file_fields(place, path))
    page = pages.read_page(file, request.offset or 1, request.limit or PAGE_LINES_MAX)
    return TextPage(
        path=path,
        content=page.content,
        mime=mime,
        offset=page.offset,
        truncated=page.has_more,
        next=page.next,
    )


def _image(picture: EncodedImage, place: Place, path: str) -> Result:
    output = ImageFile(mime=picture.mime, **_file_fields(place, path))
    note = TextContent(text=f"The image {output.name} is shown below.")
    image = FileContent(uri=picture.uri, mime=picture.mime, name=output.name)
    return Result(output, (note, image))


def _file_fields(place: Place, path: str) -> dict[str, Any]:
    name = os.fsencode(place.path.name).decode(errors="replace")
    return {"path": path, "uri": place.path.as_uri(), "name": name}
