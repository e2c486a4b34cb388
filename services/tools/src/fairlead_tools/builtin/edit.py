"""`edit`: replaces exact text in a file.

It runs once: the new text may contain the old one, and a second run would replace it again.
"""

import asyncio
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from fairlead_schema.tools.content import Json, TextContent, ToolContent
from fairlead_session.people.permission import Need
from fairlead_tools.builtin.reach import EDIT, reached, saying, sought
from fairlead_tools.files.diff import FileDiff, diff
from fairlead_tools.files.mutation import Busy, Stale, TooLarge, change, unbroken
from fairlead_tools.files.path import Place, authority
from fairlead_tools.files.replacement import NotReplaced, check, replaced
from fairlead_tools.registry.tool import CallFailed, Context, Result, Tool

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


async def needs(asked: EditInput, context: Context) -> tuple[Need, ...]:
    """The directory outside, if it is there; then the file. Nothing is read for it."""
    _check(asked)
    with saying(f"Unable to edit {asked.path}"):
        place = await sought(context, asked.path)
    preview = await asyncio.to_thread(diff, place.resource, asked.old, asked.new)
    return (*authority(place), Need(EDIT, (place.resource,), ("*",), {"diff": preview.patch}))


async def execute(asked: EditInput, context: Context) -> Result:
    """Replace, unless somebody changes the file at the same moment."""
    _check(asked)
    message = f"Unable to edit {asked.path}"
    with saying(message):
        place = await reached(context, asked.path, EDIT)
        try:
            return await unbroken(_edited, place, asked)
        except NotReplaced as error:
            raise CallFailed(f"{message}: {error}") from error
        except Stale as error:
            raise CallFailed(
                f"{asked.path} has changed since it was read. Read it again, then edit."
            ) from error
        except (Busy, TooLarge, UnicodeError) as error:
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
        check(asked.old, asked.new)
    except NotReplaced as error:
        raise CallFailed(f"Unable to edit {asked.path}: {error}") from error


def _edited(place: Place, asked: EditInput) -> Result:
    count = 0

    def make(raw: bytes) -> bytes:
        nonlocal count
        text, count = replaced(
            raw.decode(), asked.old, asked.new, everywhere=bool(asked.everywhere)
        )
        return text.encode()

    before, after = (side.decode() for side in change(place, make))
    output = EditOutput(files=(diff(place.resource, before, after),), replacements=count)
    return Result(output, (TextContent(text=_told(place.resource, asked, count)),))


def _told(resource: str, asked: EditInput, count: int) -> str:
    times = "1 replacement" if count == 1 else f"{count} replacements"
    sides = (*_side("-", asked.old), *_side("+", asked.new))
    return "\n".join((f"Edited {resource}: {times}", *sides))


def _side(mark: str, text: str) -> list[str]:
    lines = text.splitlines()
    shown = [f"{mark} {_cut(line)}" for line in lines[:SIDE_LINES_MAX]]
    if len(lines) > SIDE_LINES_MAX:
        shown[-1] = f"{mark} ... ({len(lines) - SIDE_LINES_MAX + 1} more lines)"
    return shown


def _cut(line: str) -> str:
    return line if len(line) <= LINE_LENGTH_MAX else line[: LINE_LENGTH_MAX - 3] + "..."
