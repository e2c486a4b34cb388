"""`bash`: runs a shell command in the location.

Nothing confines the command but its sandbox, if one is configured, and its resource limits. What a
permission says about it is about its text. No background jobs: what is left when it ends is ended.
"""

import asyncio
import codecs
import os
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

from fairlead_schema.tools.content import TextContent
from fairlead_service.config.sections import ToolsConfig
from fairlead_session.people.permission import Need
from fairlead_tools.registry.tool import CallContext, CallFailed, Result, Tool
from fairlead_tools.shell import command as shell
from fairlead_tools.shell import environment, scan
from fairlead_tools.shell.sandbox import Sandbox, prepare_sandbox
from fairlead_tools.spool import Spool

TIMEOUT_MS: Final = 120_000
TIMEOUT_MS_MAX: Final = 600_000
# The tool ends its command itself; the worker's own limit is only for a defect in here.
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
    """What to run, where, and for how long."""

    model_config = ConfigDict(extra="forbid")

    command: str = Field(min_length=1, max_length=100_000)
    workdir: str | None = Field(default=None, description="relative to the project's directory")
    timeout: int = Field(default=TIMEOUT_MS, gt=0, le=TIMEOUT_MS_MAX, description="milliseconds")


class BashOutput(BaseModel):
    """How it ended. Without an exit code its time was over."""

    exit: int | None = None
    truncated: bool = False
    """Whether some of the output is kept nowhere."""
    timeout: bool | None = None

    @model_serializer(mode="wrap")
    def _without_absent(self, told: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in told(self).items() if value is not None}


def tool(settings: ToolsConfig) -> Tool:
    """The tool as it is configured. Raises SandboxUnavailable."""
    sandbox = None
    if settings.sandbox == "bwrap":
        sandbox = prepare_sandbox(network=settings.sandbox_network, read=settings.sandbox_read)
    bash = BashTool(settings, sandbox)
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
    """Runs commands as the configuration says."""

    settings: ToolsConfig
    sandbox: Sandbox | None = None
    _approved: OrderedDict[str, Path] = field(default_factory=OrderedDict)
    """Where each call may run: what was asked about is what is opened."""

    async def needs(self, asked: BashInput, context: CallContext) -> tuple[Need, ...]:
        """The directory first if it is not the location's own, then the command as it is (L-51)."""
        location, directory = await asyncio.to_thread(_places, asked, context)
        self._approve(context.key, directory)
        pattern = f"{directory}/*"
        external = Need("external_directory", (pattern,), save=(pattern,))
        metadata: dict[str, Any] = {"command": asked.command, "workdir": str(directory)}
        strange = scan.outside_paths(asked.command, location, directory)
        if strange:
            metadata["outside"] = list(strange)
        need = Need("bash", (asked.command,), save=(asked.command,), metadata=metadata)
        return (need,) if directory.is_relative_to(location) else (external, need)

    async def run(self, asked: BashInput, context: CallContext) -> Result:
        """Run it to its end, or until its time is over; what it said is kept either way."""
        location, directory = await asyncio.to_thread(_places, asked, context)
        self._check(context.key, location, directory)
        descriptor = await asyncio.to_thread(_open_directory, directory)
        spool = Spool(self.settings.spool_dir, self.settings.spool_bytes_max)
        try:
            command = self._command(asked, context, location, directory, descriptor)
            ended = await shell.run_command(command, _OutputSink(spool, context).hear)
        except BaseException:
            spool.remove()
            raise
        finally:
            os.close(descriptor)
        spool.close()
        strange = () if self.sandbox else scan.outside_paths(asked.command, location, directory)
        return _result(asked, ended, spool, strange)

    def _command(
        self,
        asked: BashInput,
        context: CallContext,
        location: Path,
        directory: Path,
        descriptor: int,
    ) -> shell.ShellCommand:
        argv: tuple[str, ...] = (self.settings.shell, "-c", asked.command)
        if self.sandbox is not None:
            argv = self.sandbox.wrap(argv, location=location, directory=directory)
        settings = self.settings
        limits = {
            "cpu_s": settings.cpu_s_max,
            "memory_bytes": settings.memory_bytes_max,
            "processes": settings.processes_max,
            "file_bytes": settings.file_bytes_max,
        }
        return shell.ShellCommand(
            argv=argv,
            directory=descriptor,
            environment=environment.command_environment(os.environ, settings.environment),
            mark=context.key,
            timeout_s=asked.timeout / 1000,
            limits={name: most for name, most in limits.items() if most is not None},
        )

    def _approve(self, key: str, directory: Path) -> None:
        self._approved[key] = directory
        if len(self._approved) > APPROVED_MAX:
            self._approved.popitem(last=False)

    def _check(self, key: str, location: Path, directory: Path) -> None:
        """L-53: the directory is still the one that was asked about. Raises CallFailed."""
        approved = self._approved.pop(key, None)
        asked_about = directory == approved if approved else directory.is_relative_to(location)
        if not asked_about:
            raise CallFailed(f"The working directory is not the one that was approved: {directory}")


class _OutputSink:
    """Hears a command: into the spool, live, and as progress."""

    def __init__(self, spool: Spool, context: CallContext) -> None:
        self._spool = spool
        self._context = context
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    async def hear(self, piece: bytes) -> None:
        # A local file in the page cache: quicker than handing the piece to a thread.
        self._spool.write(piece)
        await self._context.emit_output(self._decoder.decode(piece))
        recent = TextContent(text=self._spool.recent.decode(errors="replace"))
        await self._context.report({"bytes": self._spool.bytes}, (recent,))


def _places(asked: BashInput, context: CallContext) -> tuple[Path, Path]:
    """The location and the directory to work in, without links. Raises CallFailed."""
    try:
        location = Path(context.location.directory).resolve(strict=True)
        directory = (location / (asked.workdir or ".")).resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        raise CallFailed(f"No such working directory: {asked.workdir or '.'}") from error
    if not directory.is_dir():
        raise CallFailed(f"The working directory is no directory: {directory}")
    return location, directory


def _open_directory(directory: Path) -> int:
    """The directory itself, whatever takes its name from now on. Raises CallFailed."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        if Path(f"/proc/self/fd/{descriptor}").readlink() == directory:
            return descriptor
        os.close(descriptor)
    except OSError as error:
        raise CallFailed(f"The working directory cannot be entered: {directory}") from error
    raise CallFailed(f"The working directory changed while it was entered: {directory}")


def _result(
    asked: BashInput, ended: shell.CommandExit, spool: Spool, strange: tuple[str, ...]
) -> Result:
    """Two texts, the output and how it ended; an exit code other than zero is a success (L-54)."""
    late = ended.exit is None
    output = BashOutput(exit=ended.exit, truncated=spool.dropped_bytes > 0, timeout=late or None)
    lines = [
        f"The command was ended after {asked.timeout} ms; what it had said is above. "
        "If it needs longer, set a longer timeout."
        if late
        else f"Exit code: {ended.exit}"
    ]
    if spool.dropped_bytes:
        lines.append(f"{spool.dropped_bytes:,} bytes in the middle of the output were dropped.")
    if strange:
        lines.append(f"Note: the command names paths outside its directory: {', '.join(strange)}")
    status = TextContent(text="\n".join(lines))
    if spool.bytes == 0:
        spool.remove()
        return Result(output, content=(TextContent(text=NO_OUTPUT), status))
    begin = "" if spool.recent.endswith(b"\n") else "\n"
    status = TextContent(text=begin + status.text)
    return Result(output, content=(status,), spool=spool.path)
