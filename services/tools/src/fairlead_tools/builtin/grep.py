"""`grep`: finds lines by a regular expression."""

import asyncio
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from fairlead_schema.tools.content import TextContent
from fairlead_session.people.permission import Need
from fairlead_tools.builtin.reach import reached, saying, sought
from fairlead_tools.files.outputs import NoOutputs, Outputs
from fairlead_tools.files.path import authority, shown
from fairlead_tools.files.search.globs import BadGlob, compiled, matches
from fairlead_tools.files.search.record import Line
from fairlead_tools.files.search.search import BadSearch, Ended, Engine, Unsearchable, engine
from fairlead_tools.registry.tool import CallFailed, Context, Result, Tool

ACTION: Final = "grep"
LIMIT: Final = 100
LIMIT_MAX: Final = 2_000
NOTHING: Final = "No files found"
DESCRIPTION: Final = (
    "Finds lines that match a regular expression, in one file or in all files of a directory. "
    "Hidden files are searched, ignored ones are not. include is a pattern for paths, like *.py."
)


class GrepInput(BaseModel):
    """What to find, and where."""

    model_config = ConfigDict(extra="forbid")

    pattern: str = Field(min_length=1, max_length=10_000, description="The regular expression")
    path: str | None = Field(default=None, description="A directory or a file to search")
    include: str | None = Field(default=None, max_length=1_000, description="Which files")
    limit: int | None = Field(
        default=None, ge=1, le=LIMIT_MAX, description="How many lines at most"
    )


class FoundPart(BaseModel):
    """What matched in a line, by bytes of the line."""

    text: str
    start: int
    end: int


class FoundLine(BaseModel):
    """One line that matches."""

    path: str
    line: int
    offset: int
    text: str
    submatches: tuple[FoundPart, ...]


class GrepOutput(BaseModel):
    """The lines, by path and place."""

    value: tuple[FoundLine, ...]
    truncated: bool


@dataclass(frozen=True, slots=True)
class Searcher:
    """Searches with this engine; managed outputs come from `outputs`."""

    engine: Engine
    outputs: Outputs

    async def needs(self, asked: GrepInput, context: Context) -> tuple[Need, ...]:
        _check(asked.include)
        if asked.path is not None and self.outputs.owns(asked.path):
            return (Need(ACTION, (asked.pattern,), ("*",), {"path": asked.path}),)
        with saying(_unable(asked.path)):
            place = await sought(context, asked.path or ".")
        where = {"path": place.resource}
        return (*authority(place), Need(ACTION, (asked.pattern,), ("*",), where))

    async def execute(self, asked: GrepInput, context: Context) -> Result:
        _check(asked.include)
        if asked.path is not None and self.outputs.owns(asked.path):
            async with self.outputs.local(asked.path, context) as local:
                if local is None:
                    raise CallFailed(_unable(asked.path))
                found, ended = await self._found(asked, await asyncio.to_thread(local.resolve))
            return _told([(asked.path, asked.path, line) for line in found], ended)
        with saying(_unable(asked.path)):
            place = await reached(context, asked.path or ".", None)
            found, ended = await self._found(asked, place.path)
        base = place.root
        named = [(shown(line.path), _named(line.path, base), line) for line in found]
        return _told(named, ended)

    async def _found(self, asked: GrepInput, place: Path) -> tuple[list[Line], Ended]:
        accept = partial(_accepts, asked.include)
        try:
            return await self.engine.lines(
                place, asked.pattern, asked.include, accept, asked.limit or LIMIT
            )
        except BadSearch as error:
            raise CallFailed(f"Invalid regular expression: {asked.pattern}") from error
        except Unsearchable as error:
            raise CallFailed(f"{_unable(asked.path)}: {error}") from error


def tool(searching: Engine | None = None, outputs: Outputs | None = None) -> Tool:
    """The tool; it searches with what the machine has, unless told otherwise."""
    searcher = Searcher(searching or engine(), outputs or NoOutputs())
    return Tool(
        name="grep",
        description=DESCRIPTION,
        input=GrepInput,
        output=GrepOutput,
        execute=searcher.execute,
        needs=searcher.needs,
        retry="pure",
    )


def _told(named: list[tuple[str, str, Line]], ended: Ended) -> Result:
    """Lines by their absolute and their structured path."""
    output = GrepOutput(
        value=tuple(
            FoundLine(
                path=path,
                line=line.number,
                offset=line.offset,
                text=line.text,
                submatches=tuple(
                    FoundPart(text=one.text, start=one.start, end=one.end)
                    for one in line.submatches
                ),
            )
            for _, path, line in named
        ),
        truncated=not ended.complete,
    )
    said = [f"Found {len(named)} line{'s' if len(named) > 1 else ''}"] if named else [NOTHING]
    for path, lines in groupby(named, key=lambda one: one[0]):
        said += ["", f"{path}:", *(f"  {line.number}: {line.text}" for _, _, line in lines)]
    if not ended.complete:
        said += ["", "(There may be more: narrow the search, or raise the limit)"]
    return Result(output, (TextContent(text="\n".join(said)),))


def _accepts(include: str | None, path: str) -> bool:
    return include is None or matches(include, path)


def _named(path: Path, base: Path | None) -> str:
    return shown(path.relative_to(base) if base else path)


def _check(include: str | None) -> None:
    try:
        if include is not None:
            compiled(include)
    except BadGlob as error:
        raise CallFailed(f"Invalid pattern: {include}") from error


def _unable(path: str | None) -> str:
    return f"Unable to search {path or '.'}"
