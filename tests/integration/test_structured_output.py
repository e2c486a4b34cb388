"""Structured output in a whole stack: each surface, a repair, and a runner that dies in the middle."""

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import pytest

from fairlead_cli.__main__ import main
from fairlead_testing.session_driver import events_of, wait_until_settled
from fairlead_testing.stack import Stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(240),
]

SCHEMA = {"type": "object", "properties": {"port": {"type": "string"}}, "required": ["port"]}


def answers(*turns: str) -> str:
    """A prompt whose answers are calls of the tool for structured output."""
    calls = (f"tool=structured_output args='{arguments}'" for arguments in turns)
    return f"[[sim: {' ; '.join(calls)}]] Which port?"


async def ask(up: Stack, session: str, text: str, **options: object) -> str:
    body = {"sessionID": session, "prompt": {"text": text, "schema": SCHEMA, **options}}
    answer = await up.ask("session.prompt", body)
    id_: str = answer["data"]["id"]
    return id_


def statuses(log: list[Any]) -> list[str]:
    return [event.output.status for event in events_of(log, "step.ended") if event.output]


async def test_a_prompt_over_nats_is_repaired_and_wait_has_the_value(up: Stack) -> None:
    """P-17, P-18: the reason goes back to the model, and the receipt of `wait` has the result."""
    session = await up.session()
    id_ = await ask(up, session, answers('{"port": 7}', '{"port": "Bergen"}'), tools=[])

    log = await wait_until_settled(up, session)

    assert statuses(log) == ["rejected", "accepted"]
    path = f"/api/session/{session}/wait"
    result = (await up.http.post(path, params={"messageID": id_})).json()["data"]
    assert result["output"]["value"] == {"port": "Bergen"}
    assert result["answer"]["finish"] == "stop"


@pytest.mark.parametrize("turn", [0, 1], ids=["first answer", "repair"])
async def test_a_runner_killed_before_the_judgement_leaves_one_result(up: Stack, turn: int) -> None:
    """P-17: the answer streams, every runner dies; the next one asks again and judges once."""
    slow = "reasoning='one two three four five six seven eight' delay_ms=150"
    good = f"""{slow} tool=structured_output args='{{"port": "Bergen"}}'"""
    first = """tool=structured_output args='{"port": 7}' ; """ if turn else ""
    session = await up.session()
    await ask(up, session, f"[[sim: {first}{good}]] Which port?")
    await up.until(session, "reasoning.started")

    for index in range(2):
        up.up.kill("runner", index, signal.SIGKILL)
    log = await wait_until_settled(up, session)

    assert statuses(log) == ["rejected"] * turn + ["accepted"]
    assert events_of(log, "execution.recovered")


async def test_the_command_line_prints_the_value(
    up: Stack, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """P-17: the simulated provider makes a value that fits."""
    file = tmp_path / "schema.json"
    file.write_text(json.dumps(SCHEMA))
    line = ["prompt", "Which port?", "--schema", str(file), "--system", "Be brief.", "--json"]

    code = await asyncio.to_thread(
        main, [*line, "--http", up.up.http, "--token", up.up.token or ""]
    )

    assert code == 0
    assert json.loads(capsys.readouterr().out)["output"] == {"port": "x"}
