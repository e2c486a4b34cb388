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
from fairlead_tools.builtin.input_paths import (
    READ,
    file_resource,
    find_place,
    path_errors_as,
    permitted_place,
)
from fairlead_tools.files.outputs import NoOutputFiles, OutputFiles
from fairlead_tools.files.path import external_needs, printable
from fairlead_tools.files.search.globs import BadGlob, compile_glob, matches_glob
from fairlead_tools.files.search.record import MatchedLine, is_file
from fairlead_tools.files.search.search import (
    AcceptFile,
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
    "Hidden files are searched, ignored ones are not. include is a pattern for paths, like *.py. "
    "A file that needs a permission to be read is left out, unless path names that file."
)


class GrepInput(BaseModel):
    """The pattern and the files."""

    model_config = ConfigDict(extra="forbid")

    pattern: str = Field(min_length=1, max_length=10_000, description="The regular expression")
    path: str | None = Field(default=None, description="A directory or a file to search")
    include: str | None = Field(default=None, max_length=1_000, description="Which files")
    limit: int | None = Field(
        default=None, ge=1, le=LIMIT_MAX, description="How many lines at most"
    )


class FoundPart(BaseModel):
    """The part of a line that matches, in bytes of the line."""

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
    """The matching lines, by path and line number."""

    value: tuple[FoundLine, ...]
    truncated: bool


@dataclass(frozen=True, slots=True)
class GrepTool:
    """Searches lines with a search engine, also in managed outputs."""

    engine: SearchEngine
    outputs: OutputFiles

    async def needs(self, request: GrepInput, context: CallContext) -> tuple[Need, ...]:
        _check(request.include)
        if request.path is not None and self.outputs.is_managed(request.path):
            return (Need(ACTION, (request.pattern,), ("*",), {"path": request.path}),)
        with path_errors_as(_unable(request.path)):
            place = await find_place(context, request.path or ".")
        need = Need(ACTION, (request.pattern,), ("*",), {"path": place.resource})
        if await asyncio.to_thread(is_file, place.path):
            # To search one file is to read the file.
            return (*external_needs(place), Need(READ, (place.resource,), ("*",)), need)
        return (*external_needs(place), need)

    async def execute(self, request: GrepInput, context: CallContext) -> Result:
        _check(request.include)
        if request.path is not None and self.outputs.is_managed(request.path):
            async with self.outputs.open_file(request.path, context) as local:
                if local is None:
                    raise CallFailed(_unable(request.path))
                path = await asyncio.to_thread(local.resolve)
                lines, search_end = await self._search(request, path, partial(_accepts, request))
            return _result([(request.path, request.path, line) for line in lines], search_end)
        with path_errors_as(_unable(request.path)):
            place = await permitted_place(context, request.path or ".", None)
            may_read = await context.read_filter()

            def accept(directory: Path, name: str) -> bool:
                resource = file_resource(place, directory, name)
                return _accepts(request, directory, name) and may_read(resource)

            lines, search_end = await self._search(request, place.path, accept)
        base = place.root
        matches = [(printable(line.path), _relative_name(line.path, base), line) for line in lines]
        return _result(matches, search_end)

    async def _search(
        self, request: GrepInput, path: Path, accept: AcceptFile
    ) -> tuple[list[MatchedLine], SearchEnd]:
        try:
            return await self.engine.lines(
                path, request.pattern, request.include, accept, request.limit or LIMIT
            )
        except BadSearch as error:
            raise CallFailed(f"Invalid regular expression: {request.pattern}") from error
        except SearchFailed as error:
            raise CallFailed(f"{_unable(request.path)}: {error}") from error


def tool(engine: SearchEngine | None = None, outputs: OutputFiles | None = None) -> Tool:
    """The tool, with the search engine of this machine by default."""
    grep = GrepTool(engine or find_engine(), outputs or NoOutputFiles())
    return Tool(
        name="grep",
        description=DESCRIPTION,
        input=GrepInput,
        output=GrepOutput,
        execute=grep.execute,
        needs=grep.needs,
        retry="pure",
    )


def _result(matches: list[tuple[str, str, MatchedLine]], search_end: SearchEnd) -> Result:
    """The result of matches: the absolute path, the path in the output, and the line."""
    output = GrepOutput(
        value=tuple(
            FoundLine(
                path=path,
                line=line.number,
                offset=line.offset,
                text=line.text,
                submatches=tuple(
                    FoundPart(text=part.text, start=part.start, end=part.end)
                    for part in line.submatches
                ),
            )
            for _, path, line in matches
        ),
        truncated=not search_end.complete,
    )
    count = len(matches)
    text = [f"Found {count} line{'s' if count > 1 else ''}"] if matches else [NOTHING]
    for path, lines in groupby(matches, key=lambda match: match[0]):
        text += ["", f"{path}:", *(f"  {line.number}: {line.text}" for _, _, line in lines)]
    if not search_end.complete:
        text += ["", "(There may be more: narrow the search, or raise the limit)"]
    return Result(output, (TextContent(text="\n".join(text)),))


def _accepts(request: GrepInput, _directory: Path, name: str) -> bool:
    return request.include is None or matches_glob(request.include, name)


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
