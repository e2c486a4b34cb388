"""Calls of application tools: a request with a reply over NATS, or a task in a queue for days."""

import asyncio
import json
from functools import partial
from hashlib import sha256
from typing import Final

from pydantic import ValidationError

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogUnavailable, NoResponders
from fairlead_schema.commands.application_tools import RegisteredTool, ToolAnswer, ToolTask
from fairlead_schema.ids import TenantId
from fairlead_schema.tools.content import RetryClass
from fairlead_service.ids import now_ms
from fairlead_tools.registry.call_input import describe_errors
from fairlead_tools.registry.json_schema import Document, document_model, input_model
from fairlead_tools.registry.tool import (
    CallContext,
    CallFailed,
    Deferred,
    InvalidTool,
    OutcomeUnknown,
    Result,
    Tool,
)

ACTION_PREFIX: Final = "app:"
"""Permission rules name application tools with it, so that no rule for a built-in tool fits one."""
RESERVED_NAMES: Final = frozenset(
    [
        "read",
        "write",
        "edit",
        "apply_patch",
        "glob",
        "grep",
        "bash",
        "todowrite",
        "question",
        "webfetch",
        "websearch",
        "skill",
        "task",
    ]
)
# No responder means that nothing ran: a service that restarts gets a moment.
PAUSES_S: Final = (0.2, 0.5, 1.0)
# The worker's own limit comes later, so that the error can say what is known of the outcome.
MARGIN_S: Final = 10.0


def tool_from_record(
    eventlog: EventLog,
    _tenant: TenantId,
    record: RegisteredTool,
    *,
    pauses_s: tuple[float, ...] = PAUSES_S,
) -> Tool:
    """The tool that a record describes. Raises InvalidTool."""
    if record.name in RESERVED_NAMES:
        raise InvalidTool(f"{record.name} is the name of a built-in tool: choose another name")
    content = record.model_dump(exclude={"since", "expires", "ttl_ms"})
    queue = record.mode == "queue"
    return Tool(
        name=record.name,
        description=record.description,
        input=input_model(record.input_schema),
        output=output_model(record),
        execute=partial(enqueue_call, eventlog, record)
        if queue
        else partial(request_answer, eventlog, record, pauses_s=pauses_s),
        action=f"{ACTION_PREFIX}{record.action or record.name}",
        retry=record.retry,
        timeout_s=MARGIN_S if queue else record.timeout_ms / 1000 + MARGIN_S,
        version=sha256(json.dumps(content, sort_keys=True).encode()).hexdigest(),
        remote=True,
    )


def output_model(record: RegisteredTool) -> type[Document]:
    """The output model of the record; any value if it has no schema."""
    return Document if record.output_schema is None else document_model(record.output_schema)


async def request_answer(
    eventlog: EventLog,
    record: RegisteredTool,
    request: Document,
    context: CallContext,
    *,
    pauses_s: tuple[float, ...] = PAUSES_S,
) -> Result:
    """Send the call to the service and wait for its answer. Raises CallFailed."""
    body = _task(record, request, context)
    for pause_s in (*pauses_s, None):
        try:
            answer = await eventlog.requests.request(
                record.subject, body, timeout_s=record.timeout_ms / 1000
            )
        except NoResponders as error:
            if pause_s is None:
                raise CallFailed(
                    f"{record.name} is unavailable: no service answers for it. It was not run."
                ) from error
            await asyncio.sleep(pause_s)
        except LogUnavailable as error:
            raise OutcomeUnknown(unknown_outcome(record.name, record.retry)) from error
        else:
            return result_from_bytes(record.name, answer)
    raise AssertionError("the last pause raises")


async def enqueue_call(
    eventlog: EventLog, record: RegisteredTool, request: Document, context: CallContext
) -> Deferred:
    """Put the call into the queue of the service, which settles it later. Raises CallFailed."""
    until = now_ms() + record.timeout_ms
    body = _task(record, request, context, until)
    try:
        await eventlog.work.put(record.subject, body, once=context.key)
    except LogUnavailable as error:
        raise OutcomeUnknown(unknown_outcome(record.name, record.retry)) from error
    return Deferred(until)


def unknown_outcome(name: str, retry: RetryClass) -> str:
    """Says that the outcome of a call is unknown, and whether it may be called again."""
    again = "It may have run" if retry == "once" else "It may be called again"
    return f"{name} did not answer: its outcome is unknown. {again}."


def result_from_bytes(name: str, body: bytes) -> Result:
    """The result in the bytes of an answer. Raises CallFailed for an error or an invalid answer."""
    try:
        parsed = ToolAnswer.model_validate_json(body)
    except ValidationError as error:
        raise CallFailed(f"{name} sent an invalid answer: {describe_errors(error)}") from error
    return result_from_answer(parsed)


def result_from_answer(answer: ToolAnswer) -> Result:
    """The result in an answer. Raises CallFailed with the message of the service."""
    if answer.error is not None:
        raise CallFailed(answer.error.message)
    return Result(answer.output, content=answer.content)


def _task(
    record: RegisteredTool, request: Document, context: CallContext, until: int | None = None
) -> bytes:
    task = ToolTask(
        tenant=context.at.tenant,
        session_id=context.at.session_id,
        assistant_message_id=context.assistant_message_id,
        call_id=context.call_id,
        key=context.key,
        tool=record.name,
        input=request.root,
        agent=context.agent,
        location=context.location,
        deadline=until,
    )
    return task.model_dump_json(by_alias=True, exclude_none=True).encode()
