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
from fairlead_tools.builtin.places import find_place, path_errors_as, permitted_place
from fairlead_tools.files.outputs import NoOutputFiles, OutputFiles
from fairlead_tools.files.path import external_needs, printable
from fairlead_tools.files.search.globs import BadGlob, compile_glob, matches_glob
from fairlead_tools.files.search.record import MatchedLine
from fairlead_tools.files.search.search import (
    BadSearch,
    SearchEnd,
    SearchEngine,
    SearchFailed,
    find_engine,
)
from fairlead_tools.registry.tool import CallContext, CallFailed, Result, Tool

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
class GrepTool:
    """Searches with this engine; managed outputs come from `outputs`."""

    engine: SearchEngine
    outputs: OutputFiles

    async def needs(self, asked: GrepInput, context: CallContext) -> tuple[Need, ...]:
        _check(asked.include)
        if asked.path is not None and self.outputs.is_managed(asked.path):
            return (Need(ACTION, (asked.pattern,), ("*",), {"path": asked.path}),)
        with path_errors_as(_unable(asked.path)):
            place = await find_place(context, asked.path or ".")
        where = {"path": place.resource}
        return (*external_needs(place), Need(ACTION, (asked.pattern,), ("*",), where))

    async def execute(self, asked: GrepInput, context: CallContext) -> Result:
        _check(asked.include)
        if asked.path is not None and self.outputs.is_managed(asked.path):
            async with self.outputs.open_file(asked.path, context) as local:
                if local is None:
                    raise CallFailed(_unable(asked.path))
                found, ended = await self._found(asked, await asyncio.to_thread(local.resolve))
            return _result([(asked.path, asked.path, line) for line in found], ended)
        with path_errors_as(_unable(asked.path)):
            place = await permitted_place(context, asked.path or ".", None)
            found, ended = await self._found(asked, place.path)
        base = place.root
        named = [(printable(line.path), _relative_name(line.path, base), line) for line in found]
        return _result(named, ended)

    async def _found(self, asked: GrepInput, place: Path) -> tuple[list[MatchedLine], SearchEnd]:
        accept = partial(_accepts, asked.include)
        try:
            return await self.engine.lines(
                place, asked.pattern, asked.include, accept, asked.limit or LIMIT
            )
        except BadSearch as error:
            raise CallFailed(f"Invalid regular expression: {asked.pattern}") from error
        except SearchFailed as error:
            raise CallFailed(f"{_unable(asked.path)}: {error}") from error


def tool(searching: SearchEngine | None = None, outputs: OutputFiles | None = None) -> Tool:
    """The tool; it searches with what the machine has, unless told otherwise."""
    searcher = GrepTool(searching or find_engine(), outputs or NoOutputFiles())
    return Tool(
        name="grep",
        description=DESCRIPTION,
        input=GrepInput,
        output=GrepOutput,
        execute=searcher.execute,
        needs=searcher.needs,
        retry="pure",
    )


def _result(named: list[tuple[str, str, MatchedLine]], ended: SearchEnd) -> Result:
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
    return include is None or matches_glob(include, path)


def _relative_name(path: Path, base: Path | None) -> str:
    return printable(path.relative_to(base) if base else path)


def _check(include: str | None) -> None:
    try:
        if include is not None:
            compile_glob(include)
    except BadGlob as error:
        raise CallFailed(f"Invalid pattern: {include}") from error


def _unable(path: str | None) -> str:
    return f"Unable to search {path or '.'}"
