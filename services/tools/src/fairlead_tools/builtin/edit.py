"""`edit`: replaces exact text in a file.

The tool runs once: the new text may contain the old one, which a second run would replace again.
"""

import asyncio
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from fairlead_schema.tools.content import Json, TextContent, ToolContent
from fairlead_session.people.permission import Need
from fairlead_tools.builtin.input_paths import EDIT, find_place, path_errors_as, permitted_place
from fairlead_tools.files.diff import FileDiff, diff
from fairlead_tools.files.path import Place, external_needs
from fairlead_tools.files.replacement import NotReplaced, check_replacement, replace_text
from fairlead_tools.files.safe_write import (
    FileChanged,
    FileLocked,
    FileTooLarge,
    change,
    run_to_end,
)
from fairlead_tools.registry.tool import CallContext, CallFailed, Result, Tool

SIDE_LINES_MAX: Final = 6
LINE_LENGTH_MAX: Final = 240
DESCRIPTION: Final = (
    "Replaces text in a file. oldString must occur exactly once, or replaceAll must be set. Read the "
    "file first and copy the text exactly; either kind of line break matches."
)


class EditInput(BaseModel):
    """The text to replace and its replacement."""

    model_config = ConfigDict(extra="forbid")

    path: str = Field(description="The file, relative to the working directory")
    old: str = Field(alias="oldString", description="The text to replace")
    new: str = Field(alias="newString", description="The replacement")
    everywhere: bool | None = Field(
        default=None, alias="replaceAll", description="Replace every occurrence"
    )


class EditOutput(BaseModel):
    """The changes."""

    files: tuple[FileDiff, ...]
    replacements: int


async def needs(request: EditInput, context: CallContext) -> tuple[Need, ...]:
    """The outside directory, if the file is there, then the file. The file is not read."""
    _check(request)
    with path_errors_as(f"Unable to edit {request.path}"):
        place = await find_place(context, request.path)
    preview = await asyncio.to_thread(diff, place.resource, request.old, request.new)
    return (*external_needs(place), Need(EDIT, (place.resource,), ("*",), {"diff": preview.patch}))


async def execute(request: EditInput, context: CallContext) -> Result:
    """Replace the text, unless another process changes the file at the same time."""
    _check(request)
    message = f"Unable to edit {request.path}"
    with path_errors_as(message):
        place = await permitted_place(context, request.path, EDIT)
        try:
            return await run_to_end(_edit, place, request)
        except NotReplaced as error:
            raise CallFailed(f"{message}: {error}") from error
        except FileChanged as error:
            raise CallFailed(
                f"{request.path} has changed since it was read. Read it again, then edit."
            ) from error
        except (FileLocked, FileTooLarge, UnicodeError) as error:
            raise CallFailed(message) from error


def tool() -> Tool:
    """The tool."""
    return Tool(
        name="edit",
        description=DESCRIPTION,
        input=EditInput,
        output=EditOutput,
        execute=execute,
        needs=needs,
        action=EDIT,
        project=project,
    )


def project(output: Json) -> tuple[ToolContent, ...]:
    """The names of the edited files."""
    names = ", ".join(file["file"] for file in output["files"])
    return (TextContent(text=f"Edited {names}"),)


def _check(request: EditInput) -> None:
    try:
        check_replacement(request.old, request.new)
    except NotReplaced as error:
        raise CallFailed(f"Unable to edit {request.path}: {error}") from error


def _edit(place: Place, request: EditInput) -> Result:
    count = 0

    def make(raw: bytes) -> bytes:
        nonlocal count
        text, count = replace_text(
            raw.decode(), request.old, request.new, everywhere=bool(request.everywhere)
        )
        return text.encode()

    before, after = (side.decode() for side in change(place, make))
    output = EditOutput(files=(diff(place.resource, before, after),), replacements=count)
    return Result(output, (TextContent(text=_summary(place.resource, request, count)),))


def _summary(resource: str, request: EditInput, count: int) -> str:
    times = "1 replacement" if count == 1 else f"{count} replacements"
    sides = (*_side("-", request.old), *_side("+", request.new))
    return "\n".join((f"Edited {resource}: {times}", *sides))


def _side(mark: str, text: str) -> list[str]:
    lines = text.splitlines()
    preview = [f"{mark} {_truncate(line)}" for line in lines[:SIDE_LINES_MAX]]
    if len(lines) > SIDE_LINES_MAX:
        preview[-1] = f"{mark} ... ({len(lines) - SIDE_LINES_MAX + 1} more lines)"
    return preview


def _truncate(line: str) -> str:
    return line if len(line) <= LINE_LENGTH_MAX else line[: LINE_LENGTH_MAX - 3] + "..."
