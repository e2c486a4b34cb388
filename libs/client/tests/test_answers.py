"""The answer to a prompt, collected from the events of its session."""

import asyncio
import socket
from contextlib import suppress
from typing import Any, assert_type

import pytest
from pydantic import BaseModel

from fairlead_client import (
    AnswerMisfit,
    AsyncFairlead,
    MalformedAnswer,
    NotInTime,
    PromptFailed,
    PromptUnanswered,
    PromptWithdrawn,
)
from libs.client.tests.conftest import ScriptedGateway, event, reply, stream
from libs.client.tests.test_async_commands import RECEIPT

SESSION = "/api/session/ses_a"
TOKENS = {"input": 3, "output": 2, "reasoning": 0, "cache": {"read": 0, "write": 0}}
CAUGHT_UP, HEARTBEAT = b": caught-up\n\n", b": heartbeat\n\n"
RUNNING = {"state": "running", "code": "turn", "reason": "A runner drains it."}


def step(seq: int, text: str, finish: str = "stop", **more: Any) -> list[bytes]:  # noqa: ANN401
    message = {"assistantMessageID": f"msg_a{seq}"}
    prefix = "session.next."
    return [
        event(seq, f"{prefix}step.started", **message, agent="build"),
        event(seq + 1, f"{prefix}text.ended", **message, textID="t", text=text),
        event(
            seq + 2,
            f"{prefix}step.ended",
            version=2,
            **message,
            finish=finish,
            cost=0.5,
            tokens=TOKENS,
            **more,
        ),
    ]


def failed_step(seq: int) -> list[bytes]:
    error = {"type": "unknown", "message": "Overloaded", "code": "overloaded"}
    data = {"assistantMessageID": f"msg_a{seq}", "error": error}
    return [
        event(seq, "session.next.step.started", assistantMessageID=f"msg_a{seq}"),
        event(seq + 1, "session.next.step.failed", version=2, **data),
    ]


PROMPTED = event(3, "session.next.prompted", messageID="msg_1")
OTHERS = event(2, "session.next.prompted", messageID="msg_other")


@pytest.fixture(autouse=True)
def admitted(gateway: ScriptedGateway) -> None:
    """The prompt is admitted, and the session works."""
    receipt = {
        "admittedSeq": 2,
        "id": "msg_1",
        "sessionID": "ses_a",
        "prompt": {"text": "Hi"},
        "delivery": "steer",
        "timeCreated": 1,
    }
    gateway.script(f"{SESSION}/prompt", reply({"data": receipt}))
    gateway.script(f"{SESSION}/explain", reply({"data": RUNNING}))
    gateway.script(f"{SESSION}/wait", reply(b"", 204))


def rest(gateway: ScriptedGateway, code: str, **more: Any) -> None:  # noqa: ANN401
    fields = {"state": "resting", "code": code, "reason": "It rests.", "next": "raise it"}
    gateway.script(f"{SESSION}/explain", reply({"data": fields | more}))


async def test_an_answer_is_the_text_of_the_last_step_and_the_cost_of_all(
    gateway: ScriptedGateway,
) -> None:
    gateway.script(
        f"{SESSION}/stream",
        stream(
            OTHERS, PROMPTED, CAUGHT_UP, *step(4, "I look", "tool-calls"), HEARTBEAT, *step(8, "42")
        ),
    )
    async with AsyncFairlead(gateway.url) as fairlead:
        answer = await fairlead.ask("ses_a", "Hi")

    assert (answer.text, answer.finish, answer.cost, answer.seq) == ("42", "stop", 1.0, 10)
    assert answer.tokens.input == 6


async def test_a_step_before_the_promotion_answers_another_prompt(
    gateway: ScriptedGateway,
) -> None:
    early, late = step(3, "for another"), step(7, "for me")
    promoted = event(6, "session.next.prompted", messageID="msg_1")
    gateway.script(f"{SESSION}/stream", stream(*early, promoted, *late))
    async with AsyncFairlead(gateway.url) as fairlead:
        assert (await fairlead.ask("ses_a", "Hi")).text == "for me"


async def test_a_failed_step_that_is_taken_again_is_no_failure(gateway: ScriptedGateway) -> None:
    """A runner died in mid-turn, and another one answered."""
    rest(gateway, "idle", state="idle")
    failed = [PROMPTED, *failed_step(4)]
    answered = stream(*step(6, "after all"), CAUGHT_UP)
    gateway.script(f"{SESSION}/stream", stream(*failed), answered)
    async with AsyncFairlead(gateway.url) as fairlead:
        assert (await fairlead.ask("ses_a", "Hi")).text == "after all"


async def test_what_a_look_at_the_log_brings_is_shown_too(gateway: ScriptedGateway) -> None:
    """The stream was quiet while the session answered. Whoever prints the answer must get it too."""
    rest(gateway, "idle", state="idle")
    known = stream(PROMPTED, *step(4, "42"), CAUGHT_UP)
    gateway.script(f"{SESSION}/stream", stream(CAUGHT_UP, HEARTBEAT), known)
    shown: list[str] = []
    async with AsyncFairlead(gateway.url) as fairlead, asyncio.timeout(30):
        receipt = await fairlead.prompt("ses_a", "Hi")
        answer = await fairlead.answer_of(receipt, on_event=lambda item: shown.append(item.type))

    assert answer.text == "42"
    assert shown == ["prompted", "step.started", "text.ended", "step.ended"]


async def test_a_failed_step_of_a_session_at_rest_is_raised_with_its_code(
    gateway: ScriptedGateway,
) -> None:
    rest(gateway, "failed")
    gateway.script(f"{SESSION}/stream", stream(PROMPTED, *failed_step(4)), stream(CAUGHT_UP))
    async with AsyncFairlead(gateway.url) as fairlead:
        with pytest.raises(PromptFailed, match="Overloaded") as raised:
            await fairlead.ask("ses_a", "Hi")

    assert raised.value.error["code"] == "overloaded"


async def test_a_session_that_rests_without_an_answer_says_why(gateway: ScriptedGateway) -> None:
    rest(gateway, "over-budget")
    gateway.script(f"{SESSION}/stream", stream(PROMPTED, CAUGHT_UP), stream(CAUGHT_UP))
    async with AsyncFairlead(gateway.url) as fairlead:
        with pytest.raises(PromptUnanswered, match="raise it") as raised:
            await fairlead.ask("ses_a", "Hi")

    assert raised.value.code == "over-budget"


@pytest.mark.parametrize("last", ["execution.released", "session.archived"])
async def test_nobody_waits_for_a_silence_behind_an_event_that_may_be_the_last(
    gateway: ScriptedGateway, last: str
) -> None:
    """Somebody interrupted a session that waited for a person, or archived it."""
    rest(gateway, "interrupted")
    behind = stream(PROMPTED, event(4, last))
    gateway.script(f"{SESSION}/stream", behind, stream(CAUGHT_UP))
    async with asyncio.timeout(20), AsyncFairlead(gateway.url) as fairlead:
        with pytest.raises(PromptUnanswered) as raised:
            await fairlead.ask("ses_a", "Hi")

    assert raised.value.code == "interrupted"
    assert len(gateway.asked_for(f"{SESSION}/stream")) == 2


@pytest.mark.parametrize(
    "explanation",
    [
        {"waiting_on": [{"kind": "permission", "id": "per_1", "what": "a permission"}]},
        {"code": "retry-later"},
        {"code": "context-unavailable"},
    ],
)
async def test_a_session_that_waits_is_waited_for(
    gateway: ScriptedGateway, explanation: dict[str, Any]
) -> None:
    rest(gateway, **{"code": "parked", **explanation})
    gateway.script(f"{SESSION}/stream", stream(PROMPTED, CAUGHT_UP, HEARTBEAT, *step(4, "done")))
    async with AsyncFairlead(gateway.url) as fairlead:
        assert (await fairlead.ask("ses_a", "Hi")).text == "done"


async def test_a_withdrawn_prompt_is_told_apart(gateway: ScriptedGateway) -> None:
    withdrawn = event(4, "input.cancelled", messageID="msg_1")
    gateway.script(f"{SESSION}/stream", stream(OTHERS, withdrawn))
    async with AsyncFairlead(gateway.url) as fairlead:
        with pytest.raises(PromptWithdrawn):
            await fairlead.ask("ses_a", "Hi")


async def test_the_time_of_the_caller_ends_the_wait_and_nothing_else(
    gateway: ScriptedGateway,
) -> None:
    gateway.script(f"{SESSION}/stream", stream(PROMPTED, CAUGHT_UP))
    async with AsyncFairlead(gateway.url) as fairlead:
        with pytest.raises(NotInTime, match="the session goes on"):
            await fairlead.ask("ses_a", "Hi", timeout_s=0.3)


async def test_a_step_in_the_form_of_a_newer_server_is_a_typed_error(
    gateway: ScriptedGateway,
) -> None:
    ended = event(5, "session.next.step.ended", version=9, finish="stop")
    gateway.script(f"{SESSION}/stream", stream(PROMPTED, ended))
    async with AsyncFairlead(gateway.url) as fairlead:
        with pytest.raises(MalformedAnswer, match=r"step\.ended, of which this release") as raised:
            await fairlead.ask("ses_a", "Hi")

    assert raised.value.seq == 5


class City(BaseModel):
    """A place."""

    name: str
    people: int


async def test_a_schema_gives_the_object_that_the_server_accepted(
    gateway: ScriptedGateway,
) -> None:
    """P-17: a rejected answer is repaired on the server, and the accepted one ends the work."""
    rejected = step(4, "?", "invalid-output", output={"status": "rejected", "error": "no object"})
    value = {"name": "Oslo", "people": 700_000}
    accepted = step(8, "{}", "tool-calls", output={"status": "accepted", "value": value})
    gateway.script(f"{SESSION}/stream", stream(PROMPTED, *rejected, *accepted))
    async with AsyncFairlead(gateway.url) as fairlead:
        city = assert_type(await fairlead.ask("ses_a", "A city?", schema=City), City)
        schema = City.model_json_schema()
        plain = assert_type(await fairlead.ask("ses_a", "A city?", schema=schema), dict[str, Any])

    assert city == City(name="Oslo", people=700_000)
    assert plain == value
    (first, second) = gateway.asked_for(f"{SESSION}/prompt")
    assert first.body["prompt"]["schema"] == second.body["prompt"]["schema"]


@pytest.mark.parametrize(
    "output",
    [
        {"status": "failed", "error": "people is no number"},
        {"status": "accepted", "value": {"name": "Oslo"}},
        None,
    ],
)
async def test_an_answer_that_does_not_fit_is_raised_with_its_text(
    gateway: ScriptedGateway, output: dict[str, Any] | None
) -> None:
    """The server gave up, or an older server judged nothing, or the class wants more than its schema."""
    more: dict[str, Any] = {} if output is None else {"output": output}
    gateway.script(f"{SESSION}/stream", stream(PROMPTED, *step(4, "Oslo!", **more)))
    async with AsyncFairlead(gateway.url) as fairlead:
        with pytest.raises(AnswerMisfit) as raised:
            await fairlead.ask("ses_a", "A city?", schema=City)

    assert raised.value.text == "Oslo!"


@pytest.mark.parametrize("patience_s", [None, 60.0])
@pytest.mark.parametrize("stalls", [True, False])
async def test_the_time_for_an_answer_counts_while_nobody_admits_the_prompt(
    *, patience_s: float | None, stalls: bool
) -> None:
    """With any patience: the server is away, or takes the connection and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1] if stalls else 1
        url = f"http://127.0.0.1:{port}"
        async with asyncio.timeout(20), AsyncFairlead(url, patience_s=patience_s) as fairlead:
            with pytest.raises(NotInTime, match="no server answers"):
                await fairlead.ask("ses_a", "Hi", timeout_s=0.3)


async def test_a_stream_that_says_little_is_opened_again_before_the_time_is_over() -> None:
    """The limit of a read belongs to a connection. Else the next heartbeat would tell of the time."""
    opened, serving = 0, set[asyncio.Task[Any] | None]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal opened
        serving.add(asyncio.current_task())
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        with suppress(ConnectionError):
            if f"{SESSION}/stream" not in head:
                writer.write(reply({"data": RUNNING if "explain" in head else RECEIPT}))
            else:
                opened += 1
                writer.write(stream(PROMPTED, CAUGHT_UP))
                while not writer.is_closing():
                    writer.write(b"d\r\n" + HEARTBEAT + b"\r\n")
                    await writer.drain()
                    await asyncio.sleep(0.02)
            writer.close()
            await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with asyncio.timeout(20), AsyncFairlead(url) as fairlead:
        with pytest.raises(NotInTime):
            await fairlead.ask("ses_a", "Hi", timeout_s=0.5)
    server.close()
    await asyncio.gather(*(task for task in serving if task is not None))
    assert opened > 1
