"""`bash`: runs a shell command in the location.

Only the sandbox, where there is one, and the resource limits confine the command. A permission is
about the text of the command. Processes that are left when the command ends are ended too.
"""

import asyncio
import codecs
import os
from collections import OrderedDict
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, assert_never

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

from fairlead_schema.tools.content import TextContent
from fairlead_service.config.sections import ToolsConfig
from fairlead_session.people.permission import Need
from fairlead_tools.builtin.working_directory import find_directories, open_working_directory
from fairlead_tools.files.path import approval_patterns
from fairlead_tools.files.private import PRIVATE
from fairlead_tools.private_directory import PrivateDirectory
from fairlead_tools.registry.tool import CallContext, CallFailed, Result, Tool
from fairlead_tools.shell import command as shell
from fairlead_tools.shell import environment, scan
from fairlead_tools.shell.confinement import confine
from fairlead_tools.shell.sandbox import (
    NotConfinable,
    Sandbox,
    SandboxDescriptors,
    SandboxPlace,
    sandbox_descriptors,
)
from fairlead_tools.spool import Spool

TIMEOUT_MS: Final = 120_000
TIMEOUT_MS_MAX: Final = 600_000
# The tool ends its command itself; the worker's limit is for a defect in the tool.
SLACK_S: Final = 30.0
APPROVED_MAX: Final = 4096
NO_OUTPUT: Final = "(no output)"
DESCRIPTION: Final = (
    "Run a shell command in the project's directory, or in `workdir`. Standard output and error come "
    "back together, with the exit code; long output is cut in its middle and kept whole aside. The "
    "command has no input. `timeout` is in milliseconds. Processes left in the background are ended "
    "when the command ends."
)


class BashInput(BaseModel):
    """The command, its directory and its time limit."""

    model_config = ConfigDict(extra="forbid")

    command: str = Field(min_length=1, max_length=100_000)
    workdir: str | None = Field(default=None, description="relative to the project's directory")
    timeout: int = Field(default=TIMEOUT_MS, gt=0, le=TIMEOUT_MS_MAX, description="milliseconds")


class BashOutput(BaseModel):
    """How the command ended. Without an exit code a limit ended it."""

    exit: int | None = None
    truncated: bool = False
    """Whether a part of the output was dropped."""
    timeout: bool | None = None

    @model_serializer(mode="wrap")
    def _without_absent(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in serialize(self).items() if value is not None}


def tool(settings: ToolsConfig, private: PrivateDirectory) -> Tool:
    """The configured tool. Raises SandboxUnavailable."""
    bash = BashTool(settings, private, confine(settings))
    return Tool(
        name="bash",
        description=DESCRIPTION,
        input=BashInput,
        output=BashOutput,
        execute=bash.run,
        needs=bash.needs,
        retry="once",
        timeout_s=TIMEOUT_MS_MAX / 1000 + SLACK_S,
    )


@dataclass(slots=True)
class BashTool:
    """Runs commands with the configured limits and sandbox."""

    settings: ToolsConfig
    private: PrivateDirectory
    sandbox: Sandbox | None = None
    _approved: OrderedDict[str, Path] = field(default_factory=OrderedDict)
    """The directory that was approved for each call."""

    async def needs(self, request: BashInput, context: CallContext) -> tuple[Need, ...]:
        """The directory if it is outside the location, then the exact command (L-51)."""
        location, directory = await asyncio.to_thread(self._places, request, context)
        self._approve(context.key, directory)
        pattern = f"{directory}/*"
        external = Need("external_directory", (pattern,), save=approval_patterns(pattern))
        metadata: dict[str, Any] = {"command": request.command, "workdir": str(directory)}
        outside = scan.outside_paths(request.command, location, directory)
        if outside:
            metadata["outside"] = list(outside)
        need = Need("bash", (request.command,), save=(request.command,), metadata=metadata)
        return (need,) if directory.is_relative_to(location) else (external, need)

    async def run(self, request: BashInput, context: CallContext) -> Result:
        """Run the command to its end or its time limit. Its output is kept in both cases."""
        location, directory = await asyncio.to_thread(self._places, request, context)
        self._check(context.key, location, directory)
        descriptor = await asyncio.to_thread(open_working_directory, directory)
        spool = Spool(self.private.spools, self.settings.spool_bytes_max)
        try:
            with sandbox_descriptors() if self.sandbox else nullcontext() as inner:
                command = self._command(request, context, descriptor)
                if self.sandbox is not None and inner is not None:
                    command = await self._confine(
                        self.sandbox, command, context, location, directory, inner
                    )
                command_exit = await shell.run_command(command, _OutputSink(spool, context).write)
                if inner is not None:
                    _check_sandbox(inner, command_exit, spool)
        except BaseException:
            spool.remove()
            raise
        finally:
            os.close(descriptor)
        spool.close()
        outside = () if self.sandbox else scan.outside_paths(request.command, location, directory)
        return _result(request, command_exit, spool, outside)

    def _command(
        self, request: BashInput, context: CallContext, descriptor: int
    ) -> shell.ShellCommand:
        settings = self.settings
        limits = {
            "cpu_s": settings.cpu_s_max,
            "memory_bytes": settings.memory_bytes_max,
            "processes": settings.processes_max,
            "file_bytes": settings.file_bytes_max,
            "open_files": settings.open_files_max,
        }
        return shell.ShellCommand(
            argv=(settings.shell, "-c", request.command),
            directory=descriptor,
            environment=environment.command_environment(os.environ, settings.environment),
            mark=context.key,
            timeout_s=request.timeout / 1000,
            limits={name: limit for name, limit in limits.items() if limit},
            output_bytes_max=settings.command_output_bytes_max or None,
        )

    async def _confine(
        self,
        sandbox: Sandbox,
        command: shell.ShellCommand,
        context: CallContext,
        location: Path,
        directory: Path,
        descriptors: SandboxDescriptors,
    ) -> shell.ShellCommand:
        """The command inside the sandbox. Raises CallFailed."""
        temporary = await asyncio.to_thread(self.private.session_directory, context.at)
        place = SandboxPlace(location, directory, temporary, PRIVATE.hidden)
        try:
            argv = await asyncio.to_thread(sandbox.wrap, command.argv, place, descriptors)
        except NotConfinable as error:
            raise CallFailed(
                f"A sandbox cannot confine a command in {location}: open a session in a directory "
                "below it"
            ) from error
        return replace(command, argv=argv, descriptors=descriptors.all)

    def _places(self, request: BashInput, context: CallContext) -> tuple[Path, Path]:
        """The location and the working directory, with links followed. Raises CallFailed."""
        location, directory = find_directories(
            context.location.directory, request.workdir, context.checked_directory
        )
        if PRIVATE.is_hidden(directory):
            raise CallFailed(f"No such working directory: {request.workdir} in {location}")
        if self.sandbox is not None and not directory.is_relative_to(location):
            raise CallFailed(
                f"The working directory is outside the location: {directory}. Commands run in a "
                "sandbox, where only the location is writable"
            )
        return location, directory

    def _approve(self, key: str, directory: Path) -> None:
        self._approved[key] = directory
        if len(self._approved) > APPROVED_MAX:
            self._approved.popitem(last=False)

    def _check(self, key: str, location: Path, directory: Path) -> None:
        """Check that the directory is still the approved one (L-53). Raises CallFailed."""
        approved = self._approved.pop(key, None)
        permitted = directory == approved if approved else directory.is_relative_to(location)
        if not permitted:
            raise CallFailed(f"The working directory is not the one that was approved: {directory}")


class _OutputSink:
    """Receives the output of a command: into the spool, to live readers, and as progress."""

    def __init__(self, spool: Spool, context: CallContext) -> None:
        self._spool = spool
        self._context = context
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    async def write(self, piece: bytes) -> None:
        # A write to a local file is quicker than a thread switch.
        self._spool.write(piece)
        await self._context.emit_output(self._decoder.decode(piece))
        recent = TextContent(text=self._spool.recent.decode(errors="replace"))
        await self._context.report({"bytes": self._spool.bytes}, (recent,))


def _check_sandbox(
    descriptors: SandboxDescriptors, command_exit: shell.CommandExit, spool: Spool
) -> None:
    """Check that the command ran in its sandbox. Raises CallFailed."""
    if command_exit.ended is not None or descriptors.has_run():
        return
    reason = spool.recent.decode(errors="replace").strip() or f"exit {command_exit.exit}"
    raise CallFailed(
        f"The sandbox could not run the command, and without the sandbox it is not run: {reason}. "
        "Somebody has to look at the machine of the tools service; other tools work"
    )


def _result(
    request: BashInput, command_exit: shell.CommandExit, spool: Spool, outside: tuple[str, ...]
) -> Result:
    """The output and how the command ended. A nonzero exit code is a success too (L-54)."""
    output = BashOutput(
        exit=command_exit.exit,
        truncated=spool.dropped_bytes > 0,
        timeout=command_exit.ended == "time" or None,
    )
    lines = [_status(request, command_exit)]
    if spool.dropped_bytes:
        lines.append(f"{spool.dropped_bytes:,} bytes in the middle of the output were dropped.")
    if outside:
        lines.append(f"Note: the command names paths outside its directory: {', '.join(outside)}")
    status = TextContent(text="\n".join(lines))
    if spool.bytes == 0:
        spool.remove()
        return Result(output, content=(TextContent(text=NO_OUTPUT), status))
    begin = "" if spool.recent.endswith(b"\n") else "\n"
    status = TextContent(text=begin + status.text)
    return Result(output, content=(status,), spool=spool.path)


def _status(request: BashInput, command_exit: shell.CommandExit) -> str:
    match command_exit.ended:
        case None:
            return f"Exit code: {command_exit.exit}"
        case "time":
            return (
                f"The command was ended after {request.timeout} ms; its output so far is above. "
                "If it needs longer, set a longer timeout."
            )
        case "processes":
            return "The command was ended: it had too many processes (tools.processes_max)."
        case "output":
            return (
                "The command was ended: its output was too long (tools.command_output_bytes_max)."
            )
        case _:
            assert_never(command_exit.ended)
