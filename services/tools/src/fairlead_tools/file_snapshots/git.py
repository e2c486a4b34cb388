"""Runs git on a repository of our own: nobody else's configuration, hooks or filters, bounded time and output.

The worktree belongs to a model and to people. So git reads no configuration but ours, starts no other
program, asks nobody, and takes every path by its letters.
"""

import os
import selectors
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Thread
from typing import IO, Final

OUTPUT_BYTES_MAX: Final = 64 << 20
TIMEOUT_S: Final = 60.0
_REASON_BYTES: Final = 500
# A pipe holds so much before anybody reads it, on every system that we know.
_PIPE_BYTES: Final = 4096

CONFIG: Final = """\
[core]
	repositoryformatversion = 0
	bare = false
	fileMode = true
	symlinks = true
	ignoreCase = false
	precomposeUnicode = false
	autocrlf = false
	hooksPath = /dev/null
	attributesFile = /dev/null
	excludesFile = /dev/null
	fsmonitor = false
	untrackedCache = false
	splitIndex = false
	preloadIndex = true
	compression = 1
	fsyncMethod = batch
[gc]
	auto = 0
[pack]
	threads = 1
[diff]
	ignoreSubmodules = all
"""
ATTRIBUTES: Final = "* -text -filter -ident !working-tree-encoding !diff\n"
"""Bytes are stored and restored as they are, whatever the worktree says about its files."""

_ENVIRONMENT: Final = {
    "LC_ALL": "C",
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "/bin/false",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_LITERAL_PATHSPECS": "1",
}


class GitFailed(Exception):
    """A git command failed, took too long or said too much."""


class GitExceeded(GitFailed):
    """A git command took too long or said too much. It would do so again."""


class GitMissing(GitFailed):
    """The machine has no git."""

    def __init__(self) -> None:
        super().__init__("git is not installed where the tools service runs")


@cache
def find_git() -> str | None:
    """The program, by its absolute path; None if there is none."""
    found = shutil.which("git")
    return None if found is None else os.path.realpath(found)


@dataclass(frozen=True, slots=True)
class Git:
    """Commands on one repository and one worktree."""

    repository: Path
    worktree: Path
    timeout_s: float = TIMEOUT_S
    borrowed: Path | None = None
    """A directory with objects of another repository, to read."""

    def run(
        self,
        *arguments: str | bytes,
        body: bytes = b"",
        index: Path | None = None,
        bytes_max: int = OUTPUT_BYTES_MAX,
    ) -> bytes:
        """The output of one command. Raises GitFailed."""
        return self.start(*arguments, body=body, index=index, bytes_max=bytes_max).finish()

    def start(
        self,
        *arguments: str | bytes,
        body: bytes = b"",
        index: Path | None = None,
        bytes_max: int = OUTPUT_BYTES_MAX,
    ) -> "RunningGit":
        """Begin a command that goes on beside others. Raises GitFailed."""
        program = find_git()
        if program is None:
            raise GitMissing
        environment = {
            **_ENVIRONMENT,
            "PATH": os.environ.get("PATH", os.defpath),
            "GIT_DIR": str(self.repository),
            "GIT_WORK_TREE": str(self.worktree),
        }
        if index is not None:
            environment["GIT_INDEX_FILE"] = str(index)
        if self.borrowed is not None:
            environment["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = _quote(self.borrowed)
        errors = tempfile.TemporaryFile()  # noqa: SIM115 - it is closed when the command ends
        short = _fill_pipe(body) if 0 < len(body) <= _PIPE_BYTES else None
        try:
            process = subprocess.Popen(  # noqa: S603 - an absolute path and no shell
                [program, *arguments],
                stdin=_input(body, short),
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=self.worktree,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            errors.close()
            raise GitFailed(f"git did not start: {error.strerror or error}") from error
        finally:
            if short is not None:
                os.close(short)
        return RunningGit(process, errors, body, time.monotonic() + self.timeout_s, bytes_max)


class RunningGit:
    """A command that runs."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        errors: IO[bytes],
        body: bytes,
        until: float,
        bytes_max: int,
    ) -> None:
        self._process = process
        self._errors = errors
        self._until = until
        self._bytes_max = bytes_max
        if process.stdin is not None:
            Thread(target=_feed, args=(process, body), daemon=True).start()

    def finish(self) -> bytes:
        """Wait for the end and take the output. Raises GitFailed."""
        try:
            output = self._read()
            status = self._process.wait(max(0.0, self._until - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise GitExceeded("git took too long") from None
        finally:
            reason = self._read_reason()
            self.stop()
        if status != 0:
            raise GitFailed(f"git failed: {reason}")
        return output

    def stop(self) -> None:
        """End the command and everything that it started."""
        if self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        assert self._process.stdout is not None, "the command was started with a pipe"
        self._process.stdout.close()
        self._errors.close()

    def _read(self) -> bytes:
        pipe = self._process.stdout
        assert pipe is not None, "the command was started with a pipe"
        output = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            while selector.select(max(0.0, self._until - time.monotonic())):
                piece = os.read(pipe.fileno(), 1 << 18)
                if not piece:
                    return bytes(output)
                output += piece
                if len(output) > self._bytes_max:
                    raise GitExceeded(f"git said more than {self._bytes_max} bytes")
        raise GitExceeded("git took too long")

    def _read_reason(self) -> str:
        self._errors.seek(0)
        return self._errors.read(_REASON_BYTES).decode(errors="replace").strip()


def _quote(path: Path) -> str:
    """A path of a list that has colons between its paths."""
    escaped = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _fill_pipe(body: bytes) -> int:
    """A pipe that holds a short body: nobody has to feed it while the command runs."""
    reader, writer = os.pipe()
    os.write(writer, body)
    os.close(writer)
    return reader


def _input(body: bytes, short: int | None) -> int:
    if short is not None:
        return short
    return subprocess.PIPE if body else subprocess.DEVNULL


def _feed(process: subprocess.Popen[bytes], body: bytes) -> None:
    assert process.stdin is not None, "the command was started with a pipe"
    with suppress(OSError, ValueError), process.stdin as pipe:
        pipe.write(body)
