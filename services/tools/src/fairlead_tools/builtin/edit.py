"""`edit`: replaces exact text in a file.

It runs once: the new text may contain the old one, and a second run would replace it again.
"""

import asyncio
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from fairlead_schema.tools.content import Json, TextContent, ToolContent
from fairlead_session.people.permission import Need
from fairlead_tools.builtin.places import EDIT, find_place, path_errors_as, permitted_place
from fairlead_tools.files.diff import FileDiff, diff
from fairlead_tools.files.mutation import FileChanged, FileLocked, FileTooLarge, change, run_to_end
from fairlead_tools.files.path import Place, external_needs
from fairlead_tools.files.replacement import NotReplaced, check_replacement, replace_text
from fairlead_tools.registry.tool import CallContext, CallFailed, Result, Tool

SIDE_LINES_MAX: Final = 6
LINE_LENGTH_MAX: Final = 240
DESCRIPTION: Final = (
    "Replaces text in a file. oldString must occur exactly once, or replaceAll must be set. Read the "
    "file first and copy the text as it is there; either kind of line break is found."
)


class EditInput(BaseModel):
    """What to replace by what."""

    model_config = ConfigDict(extra="forbid")

    path: str = Field(description="The file, relative to the working directory")
    old: str = Field(alias="oldString", description="The text to replace")
    new: str = Field(alias="newString", description="What to put in its place")
    everywhere: bool | None = Field(
        default=None, alias="replaceAll", description="Replace every occurrence"
    )


class EditOutput(BaseModel):
    """What was changed."""

    files: tuple[FileDiff, ...]
    replacements: int


async def needs(asked: EditInput, context: CallContext) -> tuple[Need, ...]:
    """The directory outside, if it is there; then the file. Nothing is read for it."""
    _check(asked)
    with path_errors_as(f"Unable to edit {asked.path}"):
        place = await find_place(context, asked.path)
    preview = await asyncio.to_thread(diff, place.resource, asked.old, asked.new)
    return (*external_needs(place), Need(EDIT, (place.resource,), ("*",), {"diff": preview.patch}))


async def execute(asked: EditInput, context: CallContext) -> Result:
    """Replace, unless somebody changes the file at the same moment."""
    _check(asked)
    message = f"Unable to edit {asked.path}"
    with path_errors_as(message):
        place = await permitted_place(context, asked.path, EDIT)
        try:
            return await run_to_end(_edit, place, asked)
        except NotReplaced as error:
            raise CallFailed(f"{message}: {error}") from error
        except FileChanged as error:
            raise CallFailed(
                f"{asked.path} has changed since it was read. Read it again, then edit."
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


def project(edited: Json) -> tuple[ToolContent, ...]:
    """What a result without its own words says."""
    names = ", ".join(one["file"] for one in edited["files"])
    return (TextContent(text=f"Edited {names}"),)


def _check(asked: EditInput) -> None:
    try:
        check_replacement(asked.old, asked.new)
    except NotReplaced as error:
        raise CallFailed(f"Unable to edit {asked.path}: {error}") from error


def _edit(place: Place, asked: EditInput) -> Result:
    count = 0

    def make(raw: bytes) -> bytes:
        nonlocal count
        text, count = replace_text(
            raw.decode(), asked.old, asked.new, everywhere=bool(asked.everywhere)
        )
        return text.encode()

    before, after = (side.decode() for side in change(place, make))
    output = EditOutput(files=(diff(place.resource, before, after),), replacements=count)
    return Result(output, (TextContent(text=_summary(place.resource, asked, count)),))


def _summary(resource: str, asked: EditInput, count: int) -> str:
    times = "1 replacement" if count == 1 else f"{count} replacements"
    sides = (*_side("-", asked.old), *_side("+", asked.new))
    return "\n".join((f"Edited {resource}: {times}", *sides))


def _side(mark: str, text: str) -> list[str]:
    lines = text.splitlines()
    shown = [f"{mark} {_truncate(line)}" for line in lines[:SIDE_LINES_MAX]]
    if len(lines) > SIDE_LINES_MAX:
        shown[-1] = f"{mark} ... ({len(lines) - SIDE_LINES_MAX + 1} more lines)"
    return shown


def _truncate(line: str) -> str:
    return line if len(line) <= LINE_LENGTH_MAX else line[: LINE_LENGTH_MAX - 3] + "..."
