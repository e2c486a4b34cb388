"""Sub-agents from the worker's side: made once, refused where too deep, stopped when nobody wants them."""

from typing import Any

import pytest
from pydantic_core import from_json, to_json

from fairlead_eventlog.errors import LogError
from fairlead_eventlog.memory.requests import MemoryRequests
from fairlead_schema import subjects
from fairlead_schema.events import (
    BudgetSet,
    PromptAdmitted,
    SessionCreated,
    SessionEvent,
    SessionPurged,
    ToolCalled,
    ToolFailed,
)
from fairlead_schema.location import LocationRef
from fairlead_schema.prompt import Prompt
from fairlead_schema.subjects import Address
from fairlead_schema.tools.content import ErrorInfo, Executor
from fairlead_session.calls.child_ids import TASK, child_of, first_prompt
from fairlead_session.calls.lifecycle import Failed
from fairlead_tools.calls.log import CallLog
from fairlead_tools.calls.subagents import Subagents, SubagentTask
from fairlead_tools.registry.tool import CallContext, CallFailed
from services.tools.tests.conftest import AT, BEFORE, Harness

BELOW = Address("default", child_of("ses_1", "msg_a", "call_1"))
CONTEXT = CallContext(AT, LocationRef(directory="/w"), "build", "msg_a", "call_1", "wkr_a")
CALLED = ToolCalled(
    assistant_message_id="msg_a", call_id="call_1", tool=TASK, input={}, provider=Executor()
)
WORK = SubagentTask("general", "look around")


class Ingest:
    """Takes commands as ingest does, and writes what follows from them."""

    def __init__(self, harness: Harness, meanwhile: tuple[SessionEvent, ...] = ()) -> None:
        self.told: list[tuple[str, dict[str, Any]]] = []
        self._world = harness
        self._meanwhile = meanwhile
        requests = harness.eventlog.requests
        assert isinstance(requests, MemoryRequests)
        for verb in ("create", "prompt", "interrupt"):
            requests.answerers[subjects.api("default", f"session.{verb}")] = self._taker(verb)

    def _taker(self, verb: str) -> Any:  # noqa: ANN401 - a function of bytes to bytes
        async def take(body: bytes) -> bytes:
            command = from_json(body)
            self.told.append((verb, command))
            if verb == "create":
                place = LocationRef.model_validate(command["location"])
                parent = command["parentID"]
                made = SessionCreated(title="t", project_id="p", location=place, parent_id=parent)
                await self._world.write(made, at=BELOW)
            elif verb == "prompt":
                prompt = Prompt(text=command["prompt"]["text"])
                admitted = PromptAdmitted(message_id=command["id"], prompt=prompt, delivery="steer")
                await self._world.write(admitted, at=BELOW)
                if self._meanwhile:
                    await self._world.write(*self._meanwhile)
            return to_json({"data": {}})

        return take


def children(harness: Harness, depth_max: int = 3) -> Subagents:
    return Subagents(harness.eventlog, CallLog(harness.eventlog), depth_max=depth_max)


async def test_a_session_is_made_and_prompted_once(harness: Harness) -> None:
    """However often somebody looks, and with no more than what is left of the budget."""
    await harness.write(*BEFORE, BudgetSet(cost=2.0), CALLED)
    ingest = Ingest(harness)

    for _ in range(3):
        assert await children(harness).attend(CONTEXT, WORK) is None

    (create, made), (prompt, asked) = ingest.told
    assert (create, prompt) == ("create", "prompt")
    assert (made["id"], made["parentID"], made["agent"]) == (BELOW.session_id, "ses_1", "general")
    assert made["budget"] == {"cost": 2.0}
    assert (asked["id"], asked["prompt"]) == (first_prompt(made["id"]), {"text": "look around"})


async def test_nobody_serves_and_the_call_waits(harness: Harness) -> None:
    """Ingest is away: the request comes again, and nothing is settled."""
    await harness.write(*BEFORE, CALLED)

    with pytest.raises(LogError):
        await children(harness).attend(CONTEXT, WORK)


async def test_a_call_that_was_settled_meanwhile_stops_what_it_began(harness: Harness) -> None:
    """An interrupt came between the decision and the child: it must not run on."""
    error = ErrorInfo(message="Tool execution interrupted")
    gone = ToolFailed(
        assistant_message_id="msg_a", call_id="call_1", error=error, provider=Executor()
    )
    await harness.write(*BEFORE, CALLED)
    ingest = Ingest(harness, meanwhile=(gone,))

    outcome = await children(harness).attend(CONTEXT, WORK)

    assert isinstance(outcome, Failed)
    assert [verb for verb, _ in ingest.told] == ["create", "prompt", "interrupt"]


async def test_nothing_is_made_for_a_session_that_was_purged(harness: Harness) -> None:
    """H-29: the purge came between the decision and the child."""
    await harness.write(*BEFORE, CALLED)
    await harness.write(SessionPurged())
    ingest = Ingest(harness)

    assert isinstance(await children(harness).attend(CONTEXT, WORK), Failed)
    assert ingest.told == []


async def test_what_an_abandoned_call_began_is_stopped(harness: Harness) -> None:
    """A worker died right after it made the child of a call that is settled by now."""
    await harness.write(*BEFORE, CALLED)
    ingest = Ingest(harness)
    await children(harness).stop_child(AT, "msg_a", "call_1")
    assert ingest.told == []
    await children(harness).attend(CONTEXT, WORK)

    await children(harness).stop_child(AT, "msg_a", "call_1")

    assert ingest.told[-1] == ("interrupt", {"sessionID": BELOW.session_id})


async def test_sub_agents_end_somewhere(harness: Harness) -> None:
    """A session that is itself below another has that much less room below it."""
    above = SessionCreated(
        title="t", project_id="p", location=LocationRef(directory="/w"), parent_id="ses_0"
    )
    await harness.write(above, *BEFORE[1:], CALLED)
    ingest = Ingest(harness)

    with pytest.raises(CallFailed, match="nested 1 deep"):
        await children(harness, depth_max=1).attend(CONTEXT, WORK)

    assert ingest.told == []
    assert await children(harness, depth_max=2).attend(CONTEXT, WORK) is None
