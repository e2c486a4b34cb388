"""Calls of application tools: asked and answered over NATS, or left in a queue for days."""

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
from fairlead_tools.registry.json_schema import Document, document_model, input_model
from fairlead_tools.registry.registry import describe_errors
from fairlead_tools.registry.tool import CallContext, CallFailed, DeferredCall, Result, Tool

# Nobody there means that nothing ran: a service that restarts is given a moment.
PAUSES_S: Final = (0.2, 0.5, 1.0)
# The worker's own limit stands behind the one that says what is known of the outcome.
MARGIN_S: Final = 10.0


def tool_from_record(eventlog: EventLog, _tenant: TenantId, record: RegisteredTool) -> Tool:
    """The tool that a record describes. Raises InvalidTool."""
    content = record.model_dump(exclude={"since", "expires", "ttl_ms"})
    queue = record.mode == "queue"
    return Tool(
        name=record.name,
        description=record.description,
        input=input_model(record.input_schema),
        output=output_model(record),
        execute=partial(enqueue_call if queue else request_answer, eventlog, record),
        action=record.action,
        retry=record.retry,
        timeout_s=MARGIN_S if queue else record.timeout_ms / 1000 + MARGIN_S,
        version=sha256(json.dumps(content, sort_keys=True).encode()).hexdigest(),
        remote=True,
    )


def output_model(record: RegisteredTool) -> type[Document]:
    """What the tool gives; anything, if the record does not say."""
    return Document if record.output_schema is None else document_model(record.output_schema)


async def request_answer(
    eventlog: EventLog, record: RegisteredTool, given: Document, context: CallContext
) -> Result:
    """Ask the service and wait for its answer. Raises CallFailed."""
    body = _task(record, given, context)
    for pause_s in (*PAUSES_S, None):
        try:
            answer = await eventlog.requests.request(
                record.subject, body, timeout_s=record.timeout_ms / 1000
            )
        except NoResponders as error:
            if pause_s is None:
                raise CallFailed(
                    f"{record.name} is unavailable: nobody answers for it. It was not run."
                ) from error
            await asyncio.sleep(pause_s)
        except LogUnavailable as error:
            raise CallFailed(unknown_outcome(record.name, record.retry)) from error
        else:
            return parse_answer(record.name, answer)
    raise AssertionError("the last pause raises")


async def enqueue_call(
    eventlog: EventLog, record: RegisteredTool, given: Document, context: CallContext
) -> DeferredCall:
    """Leave the call in the service's queue; its settlement comes from there."""
    until = now_ms() + record.timeout_ms
    body = _task(record, given, context, until)
    try:
        await eventlog.work.put(record.subject, body, once=context.key)
    except LogUnavailable as error:
        raise CallFailed(unknown_outcome(record.name, record.retry)) from error
    return DeferredCall(until)


def unknown_outcome(name: str, retry: RetryClass) -> str:
    """Why nobody knows what came of a call, and what that means for another."""
    again = "It may have run" if retry == "once" else "It may be called again"
    return f"{name} did not answer: its outcome is unknown. {again}."


def parse_answer(name: str, answer: bytes) -> Result:
    """What a service answered. Raises CallFailed, with its words or with ours."""
    try:
        said = ToolAnswer.model_validate_json(answer)
    except ValidationError as error:
        raise CallFailed(f"{name} answered what is no answer: {describe_errors(error)}") from error
    return answer_result(said)


def answer_result(said: ToolAnswer) -> Result:
    """An answer as the result of a run. Raises CallFailed with the service's words."""
    if said.error is not None:
        raise CallFailed(said.error.message)
    return Result(said.output, content=said.content)


def _task(
    record: RegisteredTool, given: Document, context: CallContext, until: int | None = None
) -> bytes:
    task = ToolTask(
        tenant=context.at.tenant,
        session_id=context.at.session_id,
        assistant_message_id=context.assistant_message_id,
        call_id=context.call_id,
        key=context.key,
        tool=record.name,
        input=given.root,
        agent=context.agent,
        location=context.location,
        deadline=until,
    )
    return task.model_dump_json(by_alias=True, exclude_none=True).encode()
