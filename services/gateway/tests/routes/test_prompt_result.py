"""`wait` with a message: what became of the prompt, with its structured output."""

from typing import Any

import httpx
import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_schema.catalog import ModelRef, Tokens
from fairlead_schema.events import (
    AttemptDispatched,
    ExecutionClaimed,
    ExecutionReleased,
    InputCancelled,
    PromptAdmitted,
    PromptPromoted,
    SessionEvent,
    StepEnded,
    StepStarted,
)
from fairlead_schema.prompt import Prompt
from fairlead_schema.provider.structured_output import StepOutput
from services.gateway.tests.conftest import Append

AT = "/api/session/ses_1/wait"
MODEL = ModelRef(provider_id="acme", id="fast")
PROMPT = Prompt(text="Which port?")
REJECTED = StepOutput(status="rejected", error="port: 7 is not of type 'string'")
ACCEPTED = StepOutput(status="accepted", value={"port": "Bergen"}, repairs=1)
FAILED = StepOutput(status="failed", error="no JSON", repairs=2)


def promoted(id_: str) -> tuple[SessionEvent, ...]:
    return (
        PromptAdmitted(message_id=id_, prompt=PROMPT, delivery="steer"),
        PromptPromoted(message_id=id_, prompt=PROMPT, created=0),
    )


def step(id_: str, output: StepOutput | None = None) -> tuple[SessionEvent, ...]:
    return (
        AttemptDispatched(
            attempt_id=f"att_{id_}", assistant_message_id=id_, agent="build", model=MODEL, step=1
        ),
        StepStarted(assistant_message_id=id_, agent="build", model=MODEL),
        StepEnded(assistant_message_id=id_, finish="stop", cost=0, tokens=Tokens(), output=output),
    )


CLAIMED = ExecutionClaimed(generation=1, runner="run_1")
RELEASED = ExecutionReleased(generation=1, reason="idle")


@pytest.mark.parametrize(
    ("steps", "answer", "output"),
    [
        ((*step("msg_a", REJECTED), *step("msg_b", ACCEPTED)), "msg_b", ACCEPTED),
        ((*step("msg_a", ACCEPTED), *promoted("msg_2"), *step("msg_b")), "msg_a", ACCEPTED),
        (step("msg_a", FAILED), "msg_a", FAILED),
        (step("msg_a"), "msg_a", None),
    ],
    ids=["repaired", "followed by another prompt", "failed", "free"],
)
async def test_wait_answers_with_the_result_of_a_prompt(
    client: httpx.AsyncClient,
    append: Append,
    eventlog: EventLog,
    steps: tuple[SessionEvent, ...],
    answer: str,
    output: StepOutput | None,
) -> None:
    """P-17: the value and the judgement, or the failure with its code."""
    await eventlog.status.finalise(2)
    await append("ses_1", CLAIMED, *promoted("msg_1"), *steps, RELEASED)

    result = await client.post(f"{AT}?messageID=msg_1")

    assert result.status_code == 200
    data: dict[str, Any] = result.json()["data"]
    assert data["answer"]["id"] == answer
    assert data.get("output") == (None if output is None else output.wire())
    assert ("error" in data["answer"]) == (output is FAILED)


async def test_wait_for_a_prompt_that_nobody_answers(
    client: httpx.AsyncClient, append: Append
) -> None:
    """P-17: withdrawn, or never admitted; without a message the answer stays empty."""
    await append("ses_1", *promoted("msg_1")[:1], InputCancelled(message_id="msg_1"))

    cancelled = await client.post(f"{AT}?messageID=msg_1")
    unknown = await client.post(f"{AT}?messageID=msg_9")
    plain = await client.post(AT)

    assert cancelled.json()["data"] == {"id": "msg_1", "cancelled": True}
    assert (unknown.status_code, unknown.json()["_tag"]) == (404, "MessageNotFoundError")
    assert plain.status_code == 204
