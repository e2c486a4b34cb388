"""Searches a directory with ripgrep, or with our own finder where ripgrep is missing.

Both are processes that are killed after enough results, after a time limit and on cancellation.
Their results are only hints: every match is confirmed by reading the file.
"""

import asyncio
import json
import os
import re
import shutil
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

from fairlead_tools.files.path import open_directory
from fairlead_tools.files.search.record import MatchedLine, confirm_match, is_file, is_private

RECORD_BYTES_MAX: Final = 64 << 10
SEARCH_S: Final = 60.0
MEMORY_BYTES_MAX: Final = 1 << 30
_SHELL: Final = "/bin/sh"

_FAILED: Final = 2
_COMPLAINT_MAX: Final = 4_096
_PATTERN_ERROR: Final = re.compile(
    rb"regex parse error|not allowed in a regex|exceeds size limit|error parsing regex"
)
_SIMPLE: Final = re.compile(r"[\w.*?{},-]+", re.ASCII)
COMMON: Final = (
    *("--no-config", "--sort=path", "--no-messages", "--glob=!.git"),
    *("--no-require-git", "--no-ignore-global", "--no-ignore-exclude"),
)


AcceptFile: TypeAlias = Callable[[Path, str], bool]
"""Whether a file may be shown, by the searched directory and the name in it."""


class BadSearch(Exception):
    """The pattern is invalid."""


class SearchFailed(Exception):
    """The search failed. The message says why."""


@dataclass(slots=True)
class SearchEnd:
    """How a search ended."""

    complete: bool = True
    late: bool = False


@dataclass(frozen=True, slots=True)
class SearchEngine:
    """Searches with ripgrep, or with our own finder without a program."""

    program: str | None
    limit_s: float = SEARCH_S

    async def files(
        self, directory: Path, accept: AcceptFile, limit: int
    ) -> tuple[list[Path], SearchEnd]:
        """Files below a directory by path, without hidden and ignored ones."""
        command = (self.program or "", *COMMON, "--files", "--null", "./")
        request = {"hidden": False, "pattern": None}
        paths: list[Path] = []
        search_end = SearchEnd()
        async with self._start(directory, command, request) as process:
            async for record in self._records(process, b"\0", search_end):
                name = os.fsdecode(record).removeprefix("./")
                path = directory / name
                if is_private(directory, path) or not accept(directory, name):
                    continue
                if await asyncio.to_thread(is_file, path):
                    if len(paths) == limit:
                        search_end.complete = False
                        break
                    paths.append(path)
            else:
                await _check_exit(process, search_end, has_results=bool(paths))
        return paths, search_end

    async def lines(
        self,
        place: Path,
        pattern: str,
        include: str | None,
        accept: AcceptFile,
        limit: int,
    ) -> tuple[list[MatchedLine], SearchEnd]:
        """Lines that match below a directory, or in one file."""
        single = await asyncio.to_thread(is_file, place)
        directory, target = (place.parent, f"./{place.name}") if single else (place, "./")
        flags = ("--json", "--hidden", "--encoding=none", "--no-mmap", f"--max-count={limit + 1}")
        kind = () if single or not include or not _SIMPLE.fullmatch(include) else (include,)
        types = tuple(f"--type-add=wanted:{glob}" for glob in kind) + ("--type=wanted",) * len(kind)
        command = (self.program or "", *COMMON, *flags, *types, "-e", pattern, "--", target)
        request = {
            "hidden": True,
            "pattern": pattern,
            "include": None if single else include,
            "file": place.name if single else None,
        }
        matches: list[MatchedLine] = []
        search_end = SearchEnd()
        async with self._start(directory, command, request) as process:
            async for record in self._records(process, b"\n", search_end):
                line = await asyncio.to_thread(
                    confirm_match, directory, record, partial(accept, directory)
                )
                if line is None:
                    continue
                if len(matches) == limit:
                    search_end.complete = False
                    break
                matches.append(line)
            else:
                await _check_exit(process, search_end, has_results=bool(matches))
        return matches, search_end

    @asynccontextmanager
    async def _start(
        self, directory: Path, command: tuple[str, ...], request: dict[str, Any]
    ) -> AsyncIterator[Process]:
        if not self.program:
            # Isolated mode: Python imports nothing from the searched directory.
            finder = (sys.executable, "-I", "-m", "fairlead_tools.files.search.finder")
            command = (*finder, json.dumps(request))
        try:
            process = await _spawn(directory, command)
        except ValueError as error:
            raise BadSearch from error
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            # Empties and closes the pipes.
            await process.communicate()

    async def _records(
        self, process: Process, end: bytes, search_end: SearchEnd
    ) -> AsyncIterator[bytes]:
        """The records of the process, until it ends or its time is over."""
        assert process.stdout is not None, "its output is ours"
        until = asyncio.get_running_loop().time() + self.limit_s
        while True:
            try:
                async with asyncio.timeout_at(until):
                    record = await process.stdout.readuntil(end)
            except asyncio.IncompleteReadError:
                return
            except asyncio.LimitOverrunError as error:
                raise SearchFailed("a match is longer than 64 KiB") from error
            except TimeoutError:
                search_end.complete, search_end.late = False, True
                return
            yield record.removesuffix(end)


def find_engine() -> SearchEngine:
    """The search engine of this machine."""
    return SearchEngine(shutil.which("rg"))


async def _spawn(directory: Path, command: tuple[str, ...]) -> Process:
    """Start a process in a directory that is opened without following links."""
    descriptor = await asyncio.to_thread(_open, directory)
    try:
        here = f"/proc/self/fd/{descriptor}" if sys.platform == "linux" else str(directory)
        return await asyncio.create_subprocess_exec(
            *_limit(command),
            env={},
            cwd=here,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
            limit=RECORD_BYTES_MAX,
            start_new_session=True,
        )
    finally:
        os.close(descriptor)


def _limit(command: tuple[str, ...]) -> tuple[str, ...]:
    """Limit the memory of a search before it begins. A program that holds whole lines holds whole hostile files.

    A limit from outside would come too late where the machine is busy. A stricter one stays in force.
    """
    script = 'ulimit -d "$0" 2>/dev/null; exec "$@"'
    return (_SHELL, "-c", script, str(MEMORY_BYTES_MAX // 1024), *command)


def _open(directory: Path) -> int:
    with open_directory(directory) as descriptor:
        return os.dup(descriptor)


async def _check_exit(process: Process, search_end: SearchEnd, *, has_results: bool) -> None:
    """Judge the exit of the process. Errors beside results make the search partial."""
    if search_end.late:
        if not has_results:
            raise SearchFailed("it took too long")
        return
    assert process.stderr is not None, "its complaints are ours"
    complaint = await process.stderr.read(_COMPLAINT_MAX)
    if 0 <= await process.wait() < _FAILED:
        return
    if _PATTERN_ERROR.search(complaint):
        raise BadSearch
    if not has_results:
        raise SearchFailed("it cannot be read")
    search_end.complete = False
