"""`write`: creates or replaces a whole file.

The tool runs once: after a crash the file may have been written and then changed again.
"""

import asyncio
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from fairlead_schema.tools.content import Json, TextContent, ToolContent
from fairlead_session.people.permission import Need
from fairlead_tools.builtin.input_paths import EDIT, find_place, path_errors_as, permitted_place
from fairlead_tools.files import safe_write
from fairlead_tools.files.diff import diff
from fairlead_tools.files.path import external_needs
from fairlead_tools.files.safe_write import FileLocked, run_to_end
from fairlead_tools.registry.tool import CallContext, CallFailed, Tool

DESCRIPTION: Final = (
    "Writes a file, creating it and its directories or replacing what it held. Relative paths start "
    "at the working directory. To change a part of a file use edit."
)


class WriteInput(BaseModel):
    """The file and its content."""

    model_config = ConfigDict(extra="forbid")

    path: str = Field(description="The file, relative to the working directory")
    content: str = Field(description="The complete content")


class WriteOutput(BaseModel):
    """The written file."""

    operation: Literal["write"] = "write"
    target: str
    resource: str
    existed: bool
    additions: int
    """The lines that came and went. A file whose old content is no text, or large, lost none."""
    deletions: int


async def needs(request: WriteInput, context: CallContext) -> tuple[Need, ...]:
    """The outside directory, if the file is there, then the file. What was there is not read."""
    with path_errors_as(f"Unable to write {request.path}"):
        place = await find_place(context, request.path)
    preview = await asyncio.to_thread(diff, place.resource, None, request.content)
    return (*external_needs(place), Need(EDIT, (place.resource,), ("*",), {"diff": preview.patch}))


async def execute(request: WriteInput, context: CallContext) -> WriteOutput:
    """Write the file at the permitted place."""
    message = f"Unable to write {request.path}"
    with path_errors_as(message):
        place = await permitted_place(context, request.path, EDIT)
        try:
            written = await run_to_end(safe_write.write, place, request.content.encode())
        except (FileLocked, OSError, UnicodeEncodeError) as error:
            raise CallFailed(message) from error
    before = _text(written.before)
    changed = await asyncio.to_thread(diff, place.resource, before, request.content)
    return WriteOutput(
        target=place.target,
        resource=place.resource,
        existed=written.existed,
        additions=changed.additions,
        deletions=changed.deletions,
    )


def _text(content: bytes | None) -> str | None:
    try:
        return None if content is None else content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


def project(output: Json) -> tuple[ToolContent, ...]:
    """Whether the file is new."""
    verb = "Wrote" if output["existed"] else "Created"
    return (TextContent(text=f"{verb} {output['resource']}"),)


def tool() -> Tool:
    """The tool."""
    return Tool(
        name="write",
        description=DESCRIPTION,
        input=WriteInput,
        output=WriteOutput,
        execute=execute,
        needs=needs,
        action=EDIT,
        project=project,
    )
