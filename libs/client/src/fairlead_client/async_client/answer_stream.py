"""Waits for the answer to one prompt."""

from collections.abc import Callable
from contextlib import aclosing
from typing import Final

from fairlead_client.async_client.transport import AsyncSessionTransport
from fairlead_client.deadline import Deadline
from fairlead_client.errors import MalformedAnswer, PromptUnanswered
from fairlead_client.prompt_answer import AnswerCollector, PromptAnswer, is_under_way
from fairlead_client.received_event import ReceivedEvent
from fairlead_schema.prompt import Receipt

_MAY_REST: Final = frozenset({"execution.released", "session.archived"})
"""Behind these events a session may rest without an answer."""


async def await_answer(
    transport: AsyncSessionTransport,
    receipt: Receipt,
    deadline: Deadline,
    on_event: Callable[[ReceivedEvent], None] | None = None,
) -> PromptAnswer:
    """The answer. Every event and fragment on the way goes to `on_event`. Raises the errors of `ask`."""
    collector = AnswerCollector(receipt.id, after=max(receipt.admitted_seq - 1, 0))

    def take(event: ReceivedEvent) -> None:
        # The stream repeats what a look at the log has brought before.
        is_new = event.seq is None or event.seq > collector.seq
        if on_event is not None and is_new:
            on_event(event)
        try:
            collector.take(event)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            what = f"{event.type}, of which this release knows another form,"
            raise MalformedAnswer(what, repr(error), seq=event.seq) from error

    stream = transport.follow(
        receipt.session_id, after=collector.seq, with_notices=True, deadline=deadline
    )
    async with aclosing(stream):
        async for event in stream:
            if event is not None:
                take(event)
            if collector.failure is not None and not collector.is_final:
                # After an interruption another step may follow. The rest says whether it did.
                await transport.wait(receipt.session_id, deadline)
                await _look_for_rest(transport, receipt, collector, take, deadline)
            elif event is None or event.type in _MAY_REST:
                # Perhaps nothing more will come.
                await _look_for_rest(transport, receipt, collector, take, deadline)
            if collector.is_final:
                break
    if collector.answer is not None:
        return collector.answer
    assert collector.failure is not None, "the stream ends only with an outcome"
    raise collector.failure


async def _look_for_rest(
    transport: AsyncSessionTransport,
    receipt: Receipt,
    collector: AnswerCollector,
    take: Callable[[ReceivedEvent], None],
    deadline: Deadline,
) -> None:
    """If the session rests, take everything that the log has. Raises if that is no answer."""
    while not collector.is_final:
        named = {"sessionID": receipt.session_id}
        explanation = await transport.send("session.explain", named, deadline=deadline)
        if is_under_way(explanation):
            return
        before = collector.seq
        events = transport.read(
            receipt.session_id, after=before, with_notices=True, deadline=deadline
        )
        async with aclosing(events):
            async for event in events:
                take(event)
        if collector.seq == before and not collector.is_final:
            raise collector.failure or PromptUnanswered(receipt.id, explanation)
