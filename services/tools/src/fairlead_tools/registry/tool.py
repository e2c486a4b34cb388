"""A tool: what it takes and gives, what it needs permission for, how it runs, how often it may."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, TypeAlias

from pydantic import BaseModel

from fairlead_schema.events import SessionEvent
from fairlead_schema.ids import CallId, MessageId, WorkerId
from fairlead_schema.location import LocationRef
from fairlead_schema.permission import QuestionInfo
from fairlead_schema.subjects import Address
from fairlead_schema.tools.content import Json, RetryClass, TextContent, ToolContent
from fairlead_schema.tools.request import ToolInfo
from fairlead_session.calls.lifecycle import Outcome
from fairlead_session.calls.output_bounds import OutputLimits
from fairlead_session.people.permission import Need

TIMEOUT_S: Final = 120.0


class CallFailed(Exception):
    """A tool says that it could not do what was asked; its words go to the model as they are."""


Report: TypeAlias = Callable[[Mapping[str, Any], tuple[ToolContent, ...]], Awaitable[None]]
"""Tells how far a run has come: a structured value and content, durable at a bounded cadence."""

EmitOutput: TypeAlias = Callable[[str], Awaitable[None]]
"""Tells a piece of output while it appears: live, and never stored."""


OpenManaged: TypeAlias = Callable[[str], AbstractAsyncContextManager[Path | None]]
"""A managed output as a file while it is looked at; None for a path that names none."""


@asynccontextmanager
async def no_managed_output(_path: str) -> AsyncIterator[Path | None]:
    """Nothing is kept anywhere."""
    yield None


async def ignore_progress(
    _structured: Mapping[str, Any], _content: tuple[ToolContent, ...]
) -> None:
    """Nobody follows the run."""


async def ignore_output(_text: str) -> None:
    """Nobody listens."""


@dataclass(frozen=True, slots=True)
class CallContext:
    """What an executor is told about its call."""

    at: Address
    location: LocationRef
    agent: str
    assistant_message_id: MessageId
    call_id: CallId
    worker: WorkerId
    report: Report = ignore_progress
    emit_output: EmitOutput = ignore_output
    open_managed: OpenManaged = no_managed_output
    permitted: tuple[Need, ...] | None = None
    """What the call was permitted, as its needs said then; None when nobody kept it."""

    @property
    def key(self) -> str:
        """The same for every run of one call: what makes an `idempotent` tool so."""
        return f"{self.at.session_id}:{self.assistant_message_id}:{self.call_id}"


@dataclass(frozen=True, slots=True)
class DeferredCall:
    """What an executor returns that left the call in a queue: somebody settles it until then."""

    until: int


@dataclass(frozen=True, slots=True)
class Result:
    """What an executor returns that has more to say than its output.

    `content` is what the model sees instead of the projection. `facts` are written in the commit
    that settles the call. `spool` is a file with text that is too long to hold in memory: what the
    model sees begins with a bounded view of it, and whoever settles the call removes the file.
    """

    output: object
    content: tuple[ToolContent, ...] | None = None
    facts: tuple[SessionEvent, ...] = ()
    spool: Path | None = None


Run: TypeAlias = Callable[[Any, CallContext], Awaitable[object]]
"""Runs with decoded input; what it returns must fit the output model, is a Result of that, or Handed."""

Needs: TypeAlias = Callable[[Any, CallContext], Awaitable[tuple[Need, ...]]]
"""What a call must be permitted, in the order of asking. Changes nothing; may raise CallFailed."""

Questions: TypeAlias = Callable[[Any], tuple[QuestionInfo, ...]]
"""What a person is asked on behalf of a call."""

Attend: TypeAlias = Callable[[Any, CallContext], Awaitable[Outcome | None]]
"""Sees to it that something else answers a call; None until it has. Done again on every look.

Raises CallFailed, and LogError while that cannot be seen to.
"""

Project: TypeAlias = Callable[[Json], tuple[ToolContent, ...]]
"""What the model sees of an encoded output."""


async def refuse_run(_asked: object, _context: CallContext) -> object:
    """The run of a tool that is answered without one."""
    raise CallFailed("This tool is answered elsewhere")


def plain_text(encoded: Json) -> tuple[ToolContent, ...]:
    """Text as it is; of anything else the model sees the structured value."""
    return (TextContent(text=encoded),) if isinstance(encoded, str) else ()


@dataclass(frozen=True)
class Tool:
    """One tool: opaque to everything but the registry and the worker that runs it."""

    name: str
    description: str
    input: type[BaseModel]
    output: type[BaseModel]
    execute: Run = refuse_run
    project: Project = plain_text
    needs: Needs | None = None
    questions: Questions | None = None
    """For a tool that never runs: what a person is asked, whose answers settle the call."""
    attend: Attend | None = None
    """For a tool that never runs: something else answers it, and no worker waits for that."""
    action: str | None = None
    """The permission action that hides the tool when it is wholly denied; else the name."""
    retry: RetryClass = "once"
    timeout_s: float = TIMEOUT_S
    limits: OutputLimits | None = None
    """How much text of a settlement the model sees, where it is not what is configured."""
    version: str = "1"
    """Changes when the tool does something else with the same shape."""
    remote: bool = False
    """Registered with more than this process: others may have changed it since."""

    @property
    def permission(self) -> str:
        """The action that rules about this tool speak of."""
        return self.action or self.name

    async def required_permissions(
        self, asked: BaseModel, context: CallContext
    ) -> tuple[Need, ...]:
        """What this call must be permitted before it runs. Raises CallFailed."""
        if self.needs is None:
            return (Need(self.permission, save=("*",)),)
        return await self.needs(asked, context)

    @cached_property
    def info(self) -> ToolInfo:
        """The tool as it is advertised. The revision is the same wherever the content is."""
        output = self.output.model_json_schema(mode="serialization")
        schemas = (self.input.model_json_schema(), output)
        function = getattr(self.execute, "func", self.execute)
        code = (getattr(function, "__module__", ""), getattr(function, "__qualname__", ""))
        told = (self.name, self.description, self.retry, self.timeout_s, self.version)
        content = json.dumps([*told, *schemas, *code], sort_keys=True)
        return ToolInfo(
            name=self.name,
            description=self.description,
            input_schema=schemas[0],
            retry=self.retry,
            revision=sha256(content.encode()).hexdigest()[:16],
        )
