"""A tool: its input and output, the permissions that a call needs, and how a call runs."""

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
from fairlead_schema.identity.principal import PrincipalName
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


class InvalidTool(Exception):
    """A tool that cannot be registered. The message says which, and why."""


class CallFailed(Exception):
    """A tool could not do what the call asks for. The model sees the message as it is."""


class OutcomeUnknown(CallFailed):
    """Nobody saw how the call ended. It may have had its effect."""


Report: TypeAlias = Callable[[Mapping[str, Any], tuple[ToolContent, ...]], Awaitable[None]]
"""Reports progress: a structured value and content, stored at a bounded rate."""

EmitOutput: TypeAlias = Callable[[str], Awaitable[None]]
"""Sends a piece of output to live readers. It is never stored."""


OpenManaged: TypeAlias = Callable[[str], AbstractAsyncContextManager[Path | None]]
"""Opens a managed output as a file for the length of a block; None for any other path."""


@asynccontextmanager
async def no_managed_output(_path: str) -> AsyncIterator[Path | None]:
    """Find no managed output."""
    yield None


async def ignore_progress(
    _structured: Mapping[str, Any], _content: tuple[ToolContent, ...]
) -> None:
    """Drop a progress report."""


async def ignore_output(_text: str) -> None:
    """Drop a piece of live output."""


MayRead: TypeAlias = Callable[[str], bool]
"""Whether the call may show the content of a resource without asking a person first."""

ReadFilter: TypeAlias = Callable[[], Awaitable[MayRead]]
"""Loads the judgement of the `read` action for the agent and the project of the call."""


async def show_everything() -> MayRead:
    """Judge every resource as readable: the filter of a call that nobody judged."""
    return lambda _resource: True


@dataclass(frozen=True, slots=True)
class CallContext:
    """What an executor knows about its call."""

    at: Address
    location: LocationRef
    agent: str
    assistant_message_id: MessageId
    call_id: CallId
    worker: WorkerId
    report: Report = ignore_progress
    emit_output: EmitOutput = ignore_output
    open_managed: OpenManaged = no_managed_output
    read_filter: ReadFilter = show_everything
    """For a tool that finds files by itself: each one it shows must be readable."""
    permitted: tuple[Need, ...] | None = None
    """The permissions that the call was given; None when they were not stored."""
    checked_directory: str | None = None
    """The location as its roots were checked, with its links followed; None when nothing is checked."""
    principal: PrincipalName | None = None
    """The principal for which the call and its outputs count."""

    @property
    def key(self) -> str:
        """The same for every run of one call, so that an `idempotent` tool can recognise it."""
        return f"{self.at.session_id}:{self.assistant_message_id}:{self.call_id}"


@dataclass(frozen=True, slots=True)
class Deferred:
    """Returned by an executor that left the call in a queue. Its worker settles it until then."""

    until: int


@dataclass(frozen=True, slots=True)
class Result:
    """The output of an executor, with more than the output alone.

    The model sees `content` instead of the projection. `facts` are written in the commit that
    settles the call. `spool` is a file of text that is too long for memory: the model sees a bounded
    part of it first, and the settlement removes the file.
    """

    output: object
    content: tuple[ToolContent, ...] | None = None
    facts: tuple[SessionEvent, ...] = ()
    spool: Path | None = None


Run: TypeAlias = Callable[[Any, CallContext], Awaitable[object]]
"""Runs with decoded input. Returns a value for the output model, a Result of it, or a Deferred."""

Needs: TypeAlias = Callable[[Any, CallContext], Awaitable[tuple[Need, ...]]]
"""The permissions that a call needs, in the order of asking. Changes nothing. Raises CallFailed."""

Questions: TypeAlias = Callable[[Any], tuple[QuestionInfo, ...]]
"""The questions to a person whose answers settle the call."""

Attend: TypeAlias = Callable[[Any, CallContext], Awaitable[Outcome | None]]
"""Starts or checks the work that answers a call; None while the answer is missing. Repeatable.

Raises CallFailed, and LogError while the log is unavailable.
"""

Project: TypeAlias = Callable[[Json], tuple[ToolContent, ...]]
"""The content that the model sees of an encoded output."""


async def refuse_run(_request: object, _context: CallContext) -> object:
    """The executor of a tool that never runs."""
    raise CallFailed("This tool is answered elsewhere")


def plain_text(encoded: Json) -> tuple[ToolContent, ...]:
    """Text as it is. For any other output the model sees the structured value."""
    return (TextContent(text=encoded),) if isinstance(encoded, str) else ()


@dataclass(frozen=True)
class Tool:
    """One tool. Only the registry and the worker that runs it look inside."""

    name: str
    description: str
    input: type[BaseModel]
    output: type[BaseModel]
    execute: Run = refuse_run
    project: Project = plain_text
    needs: Needs | None = None
    questions: Questions | None = None
    """For a tool that never runs: a person's answers to these questions settle the call."""
    attend: Attend | None = None
    """For a tool that never runs: another session or service answers, and no worker waits."""
    action: str | None = None
    """The permission action of the tool, if it is not the name. A wholly denied action hides it."""
    retry: RetryClass = "once"
    timeout_s: float = TIMEOUT_S
    limits: OutputLimits | None = None
    """How much text of a settlement the model sees; None for the configured limits."""
    version: str = "1"
    """Changes when the tool behaves differently with the same schemas."""
    remote: bool = False
    """Registered outside this process, so that others may have changed it."""

    @property
    def permission(self) -> str:
        """The action that permission rules name for this tool."""
        return self.action or self.name

    async def required_permissions(
        self, request: BaseModel, context: CallContext
    ) -> tuple[Need, ...]:
        """The permissions that a call needs before it runs. Raises CallFailed."""
        if self.needs is None:
            return (Need(self.permission, save=("*",)),)
        return await self.needs(request, context)

    @cached_property
    def info(self) -> ToolInfo:
        """The tool as models see it. Equal content has an equal revision in every process."""
        output = self.output.model_json_schema(mode="serialization")
        schemas = (self.input.model_json_schema(), output)
        function = getattr(self.execute, "func", self.execute)
        code = (getattr(function, "__module__", ""), getattr(function, "__qualname__", ""))
        fields = (self.name, self.description, self.retry, self.timeout_s, self.version)
        content = json.dumps([*fields, *schemas, *code], sort_keys=True)
        return ToolInfo(
            name=self.name,
            description=self.description,
            input_schema=schemas[0],
            retry=self.retry,
            revision=sha256(content.encode()).hexdigest()[:16],
        )
