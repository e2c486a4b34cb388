"""`apply_patch`: adds, changes, moves and removes files by one patch.

The tool runs once, because a second run would find its own changes.
"""

import asyncio
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from fairlead_schema.tools.content import Json, TextContent, ToolContent
from fairlead_session.people.permission import Need
from fairlead_tools.builtin.input_paths import EDIT, find_place, path_errors_as, permitted_place
from fairlead_tools.files.changes import (
    Change,
    Kind,
    PatchMismatch,
    apply_change,
    plan_changes,
    visible_text,
)
from fairlead_tools.files.diff import FileDiff, diff, preview_patch
from fairlead_tools.files.patch import Hunk, MalformedPatch, Update, parse_patch
from fairlead_tools.files.path import PathRefused, Place, external_needs
from fairlead_tools.files.safe_write import FileChanged, FileLocked, run_to_end
from fairlead_tools.registry.tool import CallContext, CallFailed, Tool

LETTERS: Final[dict[Kind, str]] = {"add": "A", "update": "M", "delete": "D", "move": "M"}
DESCRIPTION: Final = """\
Changes files by a patch of this form:

*** Begin Patch
*** Add File: new.txt
+each line of it
*** Delete File: old.txt
*** Update File: some.txt
*** Move to: other.txt
@@ a line before the change
 a line that stays
-a line that goes
+a line that comes
*** End Patch

`Move to` and the text after `@@` are optional. `*** End of File` after a chunk means that its lines
end the file. Show a few unchanged lines around each change."""


class PatchInput(BaseModel):
    """The patch."""

    model_config = ConfigDict(extra="forbid")

    patch: str = Field(alias="patchText", description="The whole patch, from Begin to End")


class AppliedChange(BaseModel):
    """One change that was applied."""

    type: Kind
    resource: str
    target: str
    origin: str | None = Field(default=None, exclude_if=lambda value: value is None)
    """The earlier name of a moved file."""


class PatchOutput(BaseModel):
    """All changes, in their order."""

    applied: tuple[AppliedChange, ...]
    files: tuple[FileDiff, ...]


async def needs(request: PatchInput, context: CallContext) -> tuple[Need, ...]:
    """Each outside directory once, then all files together. No file is read."""
    hunks = _parse(request)
    places = [place for path in _paths(hunks) for place in [await _find_place(context, path)]]
    resources = tuple(dict.fromkeys(place.resource for place in places))
    preview = await asyncio.to_thread(preview_patch, hunks)
    return (*external_needs(*places), Need(EDIT, resources, ("*",), {"diff": preview}))


async def execute(request: PatchInput, context: CallContext) -> PatchOutput:
    """Plan all changes, then apply them one after the other."""
    hunks = _parse(request)
    places: dict[str, Place] = {}
    for path in _paths(hunks):
        with path_errors_as(f"Patch verification failed: unable to edit {path}"):
            places[path] = await permitted_place(context, path, EDIT)
    try:
        changes = await asyncio.to_thread(plan_changes, hunks, places)
    except PatchMismatch as error:
        raise CallFailed(f"Patch verification failed: {error}") from error
    applied: list[AppliedChange] = []
    for change in changes:
        try:
            await run_to_end(apply_change, change)
        except (PathRefused, OSError, FileChanged, FileLocked) as error:
            raise CallFailed(_failure(change, error, applied)) from error
        applied.append(_applied_change(change))
    files = await asyncio.to_thread(lambda: tuple(map(_diff, changes)))
    return PatchOutput(applied=tuple(applied), files=files)


def tool() -> Tool:
    """The tool."""
    return Tool(
        name="apply_patch",
        description=DESCRIPTION,
        input=PatchInput,
        output=PatchOutput,
        execute=execute,
        needs=needs,
        action=EDIT,
        project=project,
    )


def project(output: Json) -> tuple[ToolContent, ...]:
    """One line for each change."""
    lines = [_line(AppliedChange.model_validate(change)) for change in output["applied"]]
    return (TextContent(text="\n".join(("Applied the patch:", *lines))),)


def _parse(request: PatchInput) -> tuple[Hunk, ...]:
    try:
        return parse_patch(request.patch)
    except MalformedPatch as error:
        raise CallFailed(f"Patch verification failed: {error}") from error


def _paths(hunks: tuple[Hunk, ...]) -> list[str]:
    """Every path in the patch, in order and without repetition."""
    pairs = ((hunk.path, hunk.to if isinstance(hunk, Update) else None) for hunk in hunks)
    return list(dict.fromkeys(path for pair in pairs for path in pair if path is not None))


async def _find_place(context: CallContext, path: str) -> Place:
    with path_errors_as(f"Patch verification failed: unable to edit {path}"):
        return await find_place(context, path)


def _applied_change(change: Change) -> AppliedChange:
    place = change.result
    origin = None if change.to is None else change.place.resource
    return AppliedChange(
        type=change.kind, resource=place.resource, target=place.target, origin=origin
    )


def _line(change: AppliedChange) -> str:
    origin = "" if change.origin is None else f" (moved from {change.origin})"
    return f"{LETTERS[change.type]} {change.resource}{origin}"


def _failure(change: Change, error: Exception, applied: list[AppliedChange]) -> str:
    match error:
        case FileChanged():
            why = "it has changed since; read it again"
        case FileExistsError():
            why = "it exists already"
        case OSError(strerror=str() as reason):
            why = reason
        case _:
            why = "it cannot be changed"
    changes = "\n".join(map(_line, applied)) or "nothing"
    return f"Patch failed at {change.result.resource}: {why}. Applied before that:\n{changes}"


def _diff(change: Change) -> FileDiff:
    return diff(change.result.resource, visible_text(change.before), visible_text(change.after))
