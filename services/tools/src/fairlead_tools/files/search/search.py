"""Searches a directory with ripgrep, or without it by a finder of our own.

Either is a process that is killed when enough was found, when time is up or when the call is
cancelled. It only says where to look: what is told of a file is confirmed by us.
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
from pathlib import Path
from typing import Any, Final

from fairlead_tools.files.path import open_directory
from fairlead_tools.files.search.record import MatchedLine, confirm_match, is_file

RECORD_BYTES_MAX: Final = 64 << 10
SEARCH_S: Final = 60.0

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


class BadSearch(Exception):
    """The pattern is none."""


class SearchFailed(Exception):
    """Nothing could be searched, or what was found cannot be told; says why."""


@dataclass(slots=True)
class SearchEnd:
    """How a search ended."""

    complete: bool = True
    late: bool = False


@dataclass(frozen=True, slots=True)
class SearchEngine:
    """What searches: ripgrep where there is one, else our own finder."""

    program: str | None
    limit_s: float = SEARCH_S

    async def files(
        self, directory: Path, accept: Callable[[str], bool], limit: int
    ) -> tuple[list[Path], SearchEnd]:
        """Files below a directory, hidden and ignored ones left out, in order of their paths."""
        command = (self.program or "", *COMMON, "--files", "--null", "./")
        asked = {"hidden": False, "pattern": None}
        found: list[Path] = []
        ended = SearchEnd()
        async with self._started(directory, command, asked) as process:
            async for record in self._records(process, b"\0", ended):
                name = os.fsdecode(record).removeprefix("./")
                if accept(name) and await asyncio.to_thread(is_file, directory / name):
                    if len(found) == limit:
                        ended.complete = False
                        break
                    found.append(directory / name)
            else:
                await _check_exit(process, ended, found=bool(found))
        return found, ended

    async def lines(
        self,
        place: Path,
        pattern: str,
        include: str | None,
        accept: Callable[[str], bool],
        limit: int,
    ) -> tuple[list[MatchedLine], SearchEnd]:
        """Lines that match below a directory, or of one file."""
        single = await asyncio.to_thread(is_file, place)
        directory, target = (place.parent, f"./{place.name}") if single else (place, "./")
        flags = ("--json", "--hidden", "--encoding=none", "--no-mmap", f"--max-count={limit + 1}")
        kind = () if single or not include or not _SIMPLE.fullmatch(include) else (include,)
        types = tuple(f"--type-add=asked:{one}" for one in kind) + ("--type=asked",) * len(kind)
        command = (self.program or "", *COMMON, *flags, *types, "-e", pattern, "--", target)
        asked = {
            "hidden": True,
            "pattern": pattern,
            "include": None if single else include,
            "file": place.name if single else None,
        }
        found: list[MatchedLine] = []
        ended = SearchEnd()
        async with self._started(directory, command, asked) as process:
            async for record in self._records(process, b"\n", ended):
                line = await asyncio.to_thread(confirm_match, directory, record, accept)
                if line is None:
                    continue
                if len(found) == limit:
                    ended.complete = False
                    break
                found.append(line)
            else:
                await _check_exit(process, ended, found=bool(found))
        return found, ended

    @asynccontextmanager
    async def _started(
        self, directory: Path, command: tuple[str, ...], asked: dict[str, Any]
    ) -> AsyncIterator[Process]:
        if not self.program:
            # Isolated: nothing in the searched directory is taken for a module.
            finder = (sys.executable, "-I", "-m", "fairlead_tools.files.search.finder")
            command = (*finder, json.dumps(asked))
        try:
            process = await _spawn(directory, command)
        except ValueError as error:
            raise BadSearch from error
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            # Empties the pipes, which hold little: nobody writes to them any more.
            await process.communicate()

    async def _records(
        self, process: Process, end: bytes, ended: SearchEnd
    ) -> AsyncIterator[bytes]:
        """What the process tells, piece by piece, until it ends or its time is up."""
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
                ended.complete, ended.late = False, True
                return
            yield record.removesuffix(end)


def find_engine() -> SearchEngine:
    """What this machine searches with."""
    return SearchEngine(shutil.which("rg"))


async def _spawn(directory: Path, command: tuple[str, ...]) -> Process:
    """Start a process in a directory that was reached without following a link."""
    holding = await asyncio.to_thread(_hold, directory)
    try:
        here = f"/proc/self/fd/{holding}" if sys.platform == "linux" else str(directory)
        return await asyncio.create_subprocess_exec(
            *command,
            cwd=here,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
            limit=RECORD_BYTES_MAX,
            start_new_session=True,
        )
    finally:
        os.close(holding)


def _hold(directory: Path) -> int:
    with open_directory(directory) as held:
        return os.dup(held)


async def _check_exit(process: Process, ended: SearchEnd, *, found: bool) -> None:
    """What an end of its own means. Errors beside results leave a search that is only partial."""
    if ended.late:
        if not found:
            raise SearchFailed("it took too long")
        return
    assert process.stderr is not None, "its complaints are ours"
    complaint = await process.stderr.read(_COMPLAINT_MAX)
    if await process.wait() < _FAILED:
        return
    if _PATTERN_ERROR.search(complaint):
        raise BadSearch
    if not found:
        raise SearchFailed("it cannot be read")
    ended.complete = False
