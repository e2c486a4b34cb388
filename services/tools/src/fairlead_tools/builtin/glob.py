"""`glob`: finds files by their paths."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from fairlead_schema.tools.content import TextContent
from fairlead_session.people.permission import Need
from fairlead_tools.builtin.input_paths import (
    file_resource,
    find_place,
    path_errors_as,
    permitted_place,
)
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
    "Hidden and ignored files are left out, and those that need a permission to be read."
)


class GlobInput(BaseModel):
    """The pattern and the directory."""

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
    """Finds files with a search engine."""

    engine: SearchEngine

    async def needs(self, request: GlobInput, context: CallContext) -> tuple[Need, ...]:
        _check(request.pattern)
        with path_errors_as(_unable(request.path)):
            place = await find_place(context, request.path or ".")
        where = {"path": place.resource}
        return (*external_needs(place), Need(ACTION, (request.pattern,), ("*",), where))

    async def execute(self, request: GlobInput, context: CallContext) -> Result:
        _check(request.pattern)
        with path_errors_as(_unable(request.path)):
            place = await permitted_place(context, request.path or ".", None)
            may_read = await context.read_filter()

            def accept(directory: Path, name: str) -> bool:
                return matches_glob(request.pattern, name) and may_read(
                    file_resource(place, directory, name)
                )

            try:
                paths, search_end = await self.engine.files(
                    place.path, accept, request.limit or LIMIT
                )
            except (BadSearch, SearchFailed) as error:
                raise CallFailed(f"{_unable(request.path)}: {error}") from error
        base = place.root
        output = GlobOutput(
            value=tuple(
                FoundFile(path=printable(path.relative_to(base) if base else path))
                for path in paths
            ),
            truncated=not search_end.complete,
        )
        lines = [printable(path) for path in paths] or [NOTHING]
        if not search_end.complete:
            lines.append(f"\n(There may be more: only {len(paths)} are listed)")
        return Result(output, (TextContent(text="\n".join(lines)),))


def tool(engine: SearchEngine | None = None) -> Tool:
    """The tool, with the search engine of this machine by default."""
    glob = GlobTool(engine or find_engine())
    return Tool(
        name="glob",
        description=DESCRIPTION,
        input=GlobInput,
        output=GlobOutput,
        execute=glob.execute,
        needs=glob.needs,
        retry="pure",
    )


def _check(pattern: str) -> None:
    try:
        compile_glob(pattern)
    except BadGlob as error:
        raise CallFailed(f"Invalid pattern: {pattern}") from error


def _unable(path: str | None) -> str:
    return f"Unable to search {path or '.'}"
