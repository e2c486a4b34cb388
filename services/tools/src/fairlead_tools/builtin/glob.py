"""`glob`: finds files by their paths."""

from dataclasses import dataclass
from functools import partial
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from fairlead_schema.tools.content import TextContent
from fairlead_session.people.permission import Need
from fairlead_tools.builtin.reach import reached, saying, sought
from fairlead_tools.files.path import authority, shown
from fairlead_tools.files.search.globs import BadGlob, compiled, matches
from fairlead_tools.files.search.search import BadSearch, Engine, Unsearchable, engine
from fairlead_tools.registry.tool import CallFailed, Context, Result, Tool

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
class Finder:
    """Finds with this engine."""

    engine: Engine

    async def needs(self, asked: GlobInput, context: Context) -> tuple[Need, ...]:
        _check(asked.pattern)
        with saying(_unable(asked.path)):
            place = await sought(context, asked.path or ".")
        where = {"path": place.resource}
        return (*authority(place), Need(ACTION, (asked.pattern,), ("*",), where))

    async def execute(self, asked: GlobInput, context: Context) -> Result:
        _check(asked.pattern)
        with saying(_unable(asked.path)):
            place = await reached(context, asked.path or ".", None)
            try:
                accept = partial(matches, asked.pattern)
                found, ended = await self.engine.files(place.path, accept, asked.limit or LIMIT)
            except (BadSearch, Unsearchable) as error:
                raise CallFailed(f"{_unable(asked.path)}: {error}") from error
        base = place.root
        output = GlobOutput(
            value=tuple(
                FoundFile(path=shown(one.relative_to(base) if base else one)) for one in found
            ),
            truncated=not ended.complete,
        )
        lines = [shown(one) for one in found] or [NOTHING]
        if not ended.complete:
            lines.append(f"\n(There may be more: only {len(found)} are listed)")
        return Result(output, (TextContent(text="\n".join(lines)),))


def tool(searching: Engine | None = None) -> Tool:
    """The tool; it searches with what the machine has, unless told otherwise."""
    finder = Finder(searching or engine())
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
        compiled(pattern)
    except BadGlob as error:
        raise CallFailed(f"Invalid pattern: {pattern}") from error


def _unable(path: str | None) -> str:
    return f"Unable to search {path or '.'}"
