"""Sub-agents from the worker's side: created once, refused where too deep, stopped when unwanted."""

from typing import Any

import pytest
from pydantic_core import from_json, to_json

from fairlead_eventlog.errors import LogError
from fairlead_eventlog.memory.requests import MemoryRequests
from fairlead_schema import subjects
from fairlead_schema.catalog import ModelRef
from fairlead_schema.errors import InvalidRequest, Refused, ServiceUnavailable, SessionNotFound
from fairlead_schema.events import (
    AgentSwitched,
    BudgetSet,
    ModelSwitched,
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
from fairlead_service.config.sections import ToolsConfig
from fairlead_session.calls.child_ids import TASK, child_of, first_prompt
from fairlead_session.calls.lifecycle import Failed
from fairlead_tools.calls.log import CallLog
from fairlead_tools.calls.subagents import Subagents, SubagentTask
from fairlead_tools.registry.tool import CallContext, CallFailed
from services.tools.tests.conftest import AT, CREATOR, Harness

CHILD_AT = Address("default", child_of("ses_1", "msg_a", "call_1"))
CONTEXT = CallContext(AT, LocationRef(directory="/w"), "build", "msg_a", "call_1", "wkr_a")
CALLED = ToolCalled(
    assistant_message_id="msg_a", call_id="call_1", tool=TASK, input={}, provider=Executor()
)
WORK = SubagentTask("general", "look around")


class Ingest:
    """Answers commands as ingest does, and writes their events."""

    def __init__(self, harness: Harness, meanwhile: tuple[SessionEvent, ...] = ()) -> None:
        self.commands: list[tuple[str, dict[str, Any]]] = []
        self.refusals: list[Refused] = []
        """The answers to the next commands."""
        self._harness = harness
        self._meanwhile = meanwhile
        requests = harness.eventlog.requests
        assert isinstance(requests, MemoryRequests)
        for verb in ("create", "prompt", "interrupt"):
            requests.answerers[subjects.api("default", f"session.{verb}")] = self._answerer(verb)

    def _answerer(self, verb: str) -> Any:  # noqa: ANN401 - a function of bytes to bytes
        async def answer(body: bytes) -> bytes:
            command = from_json(body)
            self.commands.append((verb, command))
            if self.refusals:
                return to_json({"error": self.refusals.pop(0).body.wire()})
            if verb == "create":
                place = LocationRef.model_validate(command["location"])
                parent = command["parentID"]
                created = SessionCreated(
                    title="t", project_id="p", location=place, parent_id=parent
                )
                await self._harness.write(created, at=CHILD_AT)
            elif verb == "prompt":
                prompt = Prompt(text=command["prompt"]["text"])
                admitted = PromptAdmitted(message_id=command["id"], prompt=prompt, delivery="steer")
                await self._harness.write(admitted, at=CHILD_AT)
                if self._meanwhile:
                    await self._harness.write(*self._meanwhile)
            return to_json({"data": {}})

        return answer


def subagents(harness: Harness, depth_max: int = 3) -> Subagents:
    return Subagents(
        harness.eventlog, CallLog(harness.eventlog, ToolsConfig()), depth_max=depth_max
    )


async def test_a_session_is_made_and_prompted_once(harness: Harness) -> None:
    """However often the call is attended; the child gets what is left of the budget."""
    await harness.write(BudgetSet(cost=2.0), CALLED)
    ingest = Ingest(harness)

    for _ in range(3):
        assert await subagents(harness).attend(CONTEXT, WORK) is None

    assert [verb for verb, _command in ingest.commands] == ["create", "prompt"]
    (_, create), (_, prompt) = ingest.commands
    assert create["id"] == CHILD_AT.session_id
    assert (create["parentID"], create["agent"]) == ("ses_1", "general")
    assert create["budget"] == {"cost": 2.0}
    assert prompt["id"] == first_prompt(create["id"])
    assert prompt["prompt"] == {"text": "look around", "expand": False}


@pytest.mark.parametrize(
    ("chosen", "own", "gets"),
    [
        (None, {}, None),
        ("fast", {}, "fast"),
        (None, {"build": "deep"}, "deep"),
        ("fast", {"build": "deep"}, "fast"),
        ("fast", {"general": "tiny"}, None),
    ],
)
async def test_a_child_gets_the_model_of_its_parent_unless_its_agent_has_one(
    harness: Harness, chosen: str | None, own: dict[str, str], gets: str | None
) -> None:
    """O-33, P-21: a child that names none is given its agent's own."""
    switched = (AgentSwitched(message_id="msg_g", agent="build"),)
    model = (
        (ModelSwitched(message_id="msg_m", model=ModelRef(provider_id="acme", id=chosen)),)
        if chosen
        else ()
    )
    await harness.write(*switched, *model, CALLED)
    ingest = Ingest(harness)

    def agent_model(agent: str | None) -> ModelRef | None:
        return ModelRef(provider_id="acme", id=own[agent]) if agent in own else None

    attendant = Subagents(
        harness.eventlog,
        CallLog(harness.eventlog, ToolsConfig()),
        depth_max=3,
        agent_model=agent_model,
    )
    await attendant.attend(CONTEXT, WORK)

    (_, create), *_ = ingest.commands
    assert create.get("model", {}).get("id") == gets


async def test_a_child_is_created_for_the_principal_of_its_parent(harness: Harness) -> None:
    """B11: so it counts for the principal of the root. Nobody says that a person prompted it."""
    await harness.write(CALLED)
    Ingest(harness)

    await subagents(harness).attend(CONTEXT, WORK)

    requests = harness.eventlog.requests
    assert isinstance(requests, MemoryRequests)
    assert requests.callers == [CREATOR, None]


async def test_nobody_serves_and_the_call_waits(harness: Harness) -> None:
    """While ingest is away nothing is settled, so the request comes again."""
    await harness.write(CALLED)

    with pytest.raises(LogError):
        await subagents(harness).attend(CONTEXT, WORK)


async def test_an_outage_of_ingest_does_not_fail_the_call(harness: Harness) -> None:
    """A9: an unavailable log passes, so the request comes again and starts the sub-agent then."""
    await harness.write(CALLED)
    ingest = Ingest(harness)
    ingest.refusals = [ServiceUnavailable("no leader", service="session.log")]

    with pytest.raises(LogError):
        await subagents(harness).attend(CONTEXT, WORK)

    assert await subagents(harness).attend(CONTEXT, WORK) is None
    assert [verb for verb, _command in ingest.commands] == ["create", "create", "prompt"]


async def test_a_refused_sub_agent_fails_the_call(harness: Harness) -> None:
    """A9: the same command would be refused again."""
    await harness.write(CALLED)
    Ingest(harness).refusals = [InvalidRequest("no such agent")]

    with pytest.raises(CallFailed, match="The sub-agent cannot be started: no such agent"):
        await subagents(harness).attend(CONTEXT, WORK)


async def test_an_unwanted_sub_agent_is_stopped_after_an_outage(harness: Harness) -> None:
    """A9: an outage leaves the request in its queue; a child that cannot be stopped fails nothing."""
    await harness.write(CALLED)
    ingest = Ingest(harness)
    await subagents(harness).attend(CONTEXT, WORK)
    ingest.refusals = [ServiceUnavailable("no leader", service="session.log")]

    with pytest.raises(LogError):
        await subagents(harness).stop_child(AT, "msg_a", "call_1")
    ingest.refusals = [SessionNotFound("ses_x")]
    await subagents(harness).stop_child(AT, "msg_a", "call_1")

    assert [verb for verb, _command in ingest.commands[2:]] == ["interrupt", "interrupt"]


async def test_a_call_that_was_settled_meanwhile_stops_what_it_began(harness: Harness) -> None:
    """An interrupt came between the decision and the creation: the child must not run on."""
    error = ErrorInfo(message="Tool execution interrupted")
    settled = ToolFailed(
        assistant_message_id="msg_a", call_id="call_1", error=error, provider=Executor()
    )
    await harness.write(CALLED)
    ingest = Ingest(harness, meanwhile=(settled,))

    outcome = await subagents(harness).attend(CONTEXT, WORK)

    assert isinstance(outcome, Failed)
    assert [verb for verb, _ in ingest.commands] == ["create", "prompt", "interrupt"]


async def test_nothing_is_made_for_a_session_that_was_purged(harness: Harness) -> None:
    """H-29: the purge came between the decision and the creation of the child."""
    await harness.write(CALLED)
    await harness.write(SessionPurged())
    ingest = Ingest(harness)

    assert isinstance(await subagents(harness).attend(CONTEXT, WORK), Failed)
    assert ingest.commands == []


async def test_what_an_abandoned_call_began_is_stopped(harness: Harness) -> None:
    """A worker died right after it created the child of a call that is settled by now."""
    await harness.write(CALLED)
    ingest = Ingest(harness)
    await subagents(harness).stop_child(AT, "msg_a", "call_1")
    assert ingest.commands == []
    await subagents(harness).attend(CONTEXT, WORK)

    await subagents(harness).stop_child(AT, "msg_a", "call_1")

    assert ingest.commands[-1] == ("interrupt", {"sessionID": CHILD_AT.session_id})


async def test_sub_agents_end_somewhere(harness: Harness) -> None:
    """A session that is itself a child may nest one level less."""
    above = SessionCreated(
        title="t", project_id="p", location=LocationRef(directory="/w"), parent_id="ses_0"
    )
    await harness.write(above, CALLED)
    ingest = Ingest(harness)

    with pytest.raises(CallFailed, match="nested 1 deep"):
        await subagents(harness, depth_max=1).attend(CONTEXT, WORK)

    assert ingest.commands == []
    assert await subagents(harness, depth_max=2).attend(CONTEXT, WORK) is None
