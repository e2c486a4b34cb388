"""What becomes of a run: checked output, crashes, timeouts, and what no log can hold."""

import asyncio
import dataclasses
import logging
from typing import Any

import pytest
from pydantic import BaseModel, RootModel

from fairlead_schema.events import ToolSucceeded
from fairlead_schema.tools.content import TextContent
from fairlead_tools.registry.tool import CallContext, CallFailed
from services.tools.tests.conftest import (
    EchoInput,
    EchoOutput,
    Gate,
    Harness,
    run_worker,
    tool,
    wait_until,
)

FOREIGN = RootModel[dict[str, int]]({"said": 3})


async def test_input_that_does_not_fit_never_runs(harness: Harness) -> None:
    """J-17: the error starts with its kind and says what does not fit."""
    gate = Gate()
    running = tool(execute=gate)
    harness.registry.register(running)
    await harness.call(running, key=7)

    (message,) = await harness.serve_all()

    assert message.startswith("Invalid tool input: key: ")
    assert (gate.runs, await harness.starts()) == ([], [])


@pytest.mark.parametrize("returned", [{"said": 3}, {}, None, FOREIGN])
async def test_output_that_does_not_fit_is_never_a_success(
    harness: Harness, returned: object
) -> None:
    """J-18: nor is an instance of another model."""

    async def run(_asked: EchoInput, _context: CallContext) -> object:
        return returned

    running = tool(execute=run)
    harness.registry.register(running)
    await harness.call(running)

    (message,) = await harness.serve_all()

    assert message.startswith("Tool execution failed: Invalid tool output: ")


async def test_output_nested_deeper_than_the_log_can_be_read_is_no_success(
    harness: Harness,
) -> None:
    """J-18: written, it would stop its session for good."""

    class Anything(BaseModel):
        said: Any

    nested: list[Any] = []
    for _ in range(130):
        nested = [nested]

    async def run(_asked: EchoInput, _context: CallContext) -> object:
        return {"said": nested}

    running = dataclasses.replace(tool(execute=run), output=Anything)
    harness.registry.register(running)
    await harness.call(running)

    (message,) = await harness.serve_all()

    assert "nested deeper than 128 levels" in message


@pytest.mark.parametrize(
    ("raised", "message"),
    [
        (RuntimeError("boom"), "Tool execution failed: boom"),
        (KeyError(), "Tool execution failed: KeyError"),
        (SystemExit(3), "Tool execution failed: the tool raised SystemExit(3)"),
        (asyncio.CancelledError(), "Tool execution failed: the tool cancelled itself"),
        (CallFailed("no such file"), "no such file"),
    ],
)
async def test_a_crash_is_the_failure_of_that_call_alone(
    harness: Harness, raised: BaseException, message: str
) -> None:
    """E-07, J-20: a sibling goes on; a declared failure keeps its own words."""

    async def run(_asked: EchoInput, _context: CallContext) -> EchoOutput:
        raise raised

    crashing, gate = tool("crash", execute=run), Gate()
    waiting = tool("wait", execute=gate)
    for one in (crashing, waiting):
        harness.registry.register(one)
    await harness.call(waiting, id_="call_1")
    await harness.call(crashing, id_="call_2")

    async with run_worker(harness.worker()):
        await wait_until(lambda: len(harness.jobs) == 1)
        gate.opened.set()
        await wait_until(lambda: not harness.jobs)

    assert await harness.settlements() == [message, "{'said': 'k'}"]


async def test_a_crash_in_words_that_are_no_text_is_told_in_escapes(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    """E-07: half a character in an error must not lose the settlement."""

    async def run(_asked: EchoInput, _context: CallContext) -> EchoOutput:
        raise RuntimeError("\ud800")

    crashing = tool("crash", execute=run)
    harness.registry.register(crashing)
    await harness.call(crashing)

    # The report of a captured log travels between test processes, which only text can do.
    with caplog.at_level(logging.CRITICAL, logger="fairlead_tools.calls.tool_run"):
        assert await harness.serve_all() == ["Tool execution failed: \\ud800"]


async def test_a_call_that_takes_too_long_is_cancelled_from_outside(harness: Harness) -> None:
    """E-07: the timeout is the registry's, not the tool's."""
    gate = Gate()
    running = tool(execute=gate, timeout_s=0.01)
    harness.registry.register(running)
    await harness.call(running)

    assert await harness.serve_all() == ["Tool execution failed: timed out after 0.01 s"]
    assert gate.cancelled == 1


async def test_what_the_log_cannot_hold_fails_the_call_instead_of_losing_it(
    harness: Harness,
) -> None:
    """J-33: too large for one commit, or no text at all."""
    outputs: dict[str, Any] = {"large": "x" * (9 * 1024 * 1024), "odd": "\ud800"}

    async def run(asked: EchoInput, _context: CallContext) -> EchoOutput:
        return EchoOutput.model_construct(said=outputs[asked.key])

    running = tool(execute=run, output=RootModel[dict[str, Any]])
    harness.registry.register(running)
    await harness.call(running, id_="call_1", key="large")
    await harness.call(running, id_="call_2", key="odd")

    messages = await harness.serve_all()

    assert len(messages) == 2
    assert all(one.startswith("Tool execution failed: ") for one in messages)


async def test_text_is_told_as_text(harness: Harness) -> None:
    """J-21: without a projection a string becomes one text item."""

    async def run(_asked: EchoInput, _context: CallContext) -> str:
        return "hello"

    running = tool(execute=run, output=RootModel[str])
    harness.registry.register(running)
    await harness.call(running)
    await harness.serve_all()

    event = (await harness.events())[-1]
    assert isinstance(event, ToolSucceeded)
    assert (event.structured, event.content) == ({}, (TextContent(text="hello"),))
