"""`glob`: finds files by their paths."""

from dataclasses import dataclass
from functools import partial
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from fairlead_schema.tools.content import TextContent
from fairlead_session.people.permission import Need
from fairlead_tools.builtin.places import find_place, path_errors_as, permitted_place
from fairlead_tools.files.path import external_needs, printable
from fairlead_tools.files.search.globs import BadGlob, compile_glob, matches_glob
from fairlead_tools.files.search.search import BadSearch, SearchEngine, SearchFailed, find_engine
from fairlead_tools.registry.tool import CallContext, CallFailed, Result, Tool

ACTION: Final = "glob"
LIMIT: Final = 100
LIMIT_MAX: Final = 2_000
NOTHING: Final = "No files found"
DESCRIPTION: Final = (
    "Finds files by a pattern like src/**/*.py; a pattern without a slash finds names at any depth. "
    "Hidden and ignored files are left out."
)


class GlobInput(BaseModel):
    """What to find, and where."""

    model_config = ConfigDict(extra="forbid")

    pattern: str = Field(min_length=1, max_length=1_000, description="The pattern")
    path: str | None = Field(
        default=None, description="The directory, if not the working directory"
    )
    limit: int | None = Field(default=None, ge=1, le=LIMIT_MAX, description="How many at most")


class FoundFile(BaseModel):
    """One file."""

    path: str


class GlobOutput(BaseModel):
    """The files, by path."""

    value: tuple[FoundFile, ...]
    truncated: bool


@dataclass(frozen=True, slots=True)
class GlobTool:
    """Finds with this engine."""

    engine: SearchEngine

    async def needs(self, asked: GlobInput, context: CallContext) -> tuple[Need, ...]:
        _check(asked.pattern)
        with path_errors_as(_unable(asked.path)):
            place = await find_place(context, asked.path or ".")
        where = {"path": place.resource}
        return (*external_needs(place), Need(ACTION, (asked.pattern,), ("*",), where))

    async def execute(self, asked: GlobInput, context: CallContext) -> Result:
        _check(asked.pattern)
        with path_errors_as(_unable(asked.path)):
            place = await permitted_place(context, asked.path or ".", None)
            try:
                accept = partial(matches_glob, asked.pattern)
                found, ended = await self.engine.files(place.path, accept, asked.limit or LIMIT)
            except (BadSearch, SearchFailed) as error:
                raise CallFailed(f"{_unable(asked.path)}: {error}") from error
        base = place.root
        output = GlobOutput(
            value=tuple(
                FoundFile(path=printable(one.relative_to(base) if base else one)) for one in found
            ),
            truncated=not ended.complete,
        )
        lines = [printable(one) for one in found] or [NOTHING]
        if not ended.complete:
            lines.append(f"\n(There may be more: only {len(found)} are listed)")
        return Result(output, (TextContent(text="\n".join(lines)),))


def tool(searching: SearchEngine | None = None) -> Tool:
    """The tool; it searches with what the machine has, unless told otherwise."""
    finder = GlobTool(searching or find_engine())
    return Tool(
        name="glob",
        description=DESCRIPTION,
        input=GlobInput,
        output=GlobOutput,
        execute=finder.execute,
        needs=finder.needs,
        retry="pure",
    )


def _check(pattern: str) -> None:
    try:
        compile_glob(pattern)
    except BadGlob as error:
        raise CallFailed(f"Invalid pattern: {pattern}") from error


def _unable(path: str | None) -> str:
    return f"Unable to search {path or '.'}"
