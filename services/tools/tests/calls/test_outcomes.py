"""Outcomes of runs: checked output, crashes, timeouts, and results that no log can hold."""

import asyncio
import dataclasses
import logging
from typing import Any

import pytest
from pydantic import BaseModel, RootModel

from fairlead_schema.events import ToolFailed, ToolSucceeded
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
    echo_tool = tool(execute=gate)
    harness.registry.register(echo_tool)
    await harness.call(echo_tool, key=7)

    (message,) = await harness.serve_all()

    assert message.startswith("Invalid tool input: key: ")
    assert (gate.runs, await harness.starts()) == ([], [])


@pytest.mark.parametrize("returned", [{"said": 3}, {}, None, FOREIGN])
async def test_output_that_does_not_fit_is_never_a_success(
    harness: Harness, returned: object
) -> None:
    """J-18: an instance of another model fails too."""

    async def run(_request: EchoInput, _context: CallContext) -> object:
        return returned

    echo_tool = tool(execute=run)
    harness.registry.register(echo_tool)
    await harness.call(echo_tool)

    (message,) = await harness.serve_all()

    assert message.startswith("Tool execution failed: Invalid tool output: ")


async def test_output_nested_deeper_than_the_log_can_be_read_is_no_success(
    harness: Harness,
) -> None:
    """J-18: a log with such an event could not be read again."""

    class Anything(BaseModel):
        said: Any

    nested: list[Any] = []
    for _ in range(130):
        nested = [nested]

    async def run(_request: EchoInput, _context: CallContext) -> object:
        return {"said": nested}

    echo_tool = dataclasses.replace(tool(execute=run), output=Anything)
    harness.registry.register(echo_tool)
    await harness.call(echo_tool)

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
    """E-07, J-20: other calls run on; a declared failure keeps its message."""

    async def run(_request: EchoInput, _context: CallContext) -> EchoOutput:
        raise raised

    crashing_tool, gate = tool("crash", execute=run), Gate()
    waiting_tool = tool("wait", execute=gate)
    for new_tool in (crashing_tool, waiting_tool):
        harness.registry.register(new_tool)
    await harness.call(waiting_tool, id_="call_1")
    await harness.call(crashing_tool, id_="call_2")

    async with run_worker(harness.worker()):
        await wait_until(lambda: len(harness.jobs) == 1)
        gate.opened.set()
        await wait_until(lambda: not harness.jobs)

    assert await harness.settlements() == [message, "{'said': 'k'}"]


async def test_a_crash_in_words_that_are_no_text_is_told_in_escapes(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    """E-07: a lone surrogate in an error must not lose the settlement."""

    async def run(_request: EchoInput, _context: CallContext) -> EchoOutput:
        raise RuntimeError("\ud800")

    crashing_tool = tool("crash", execute=run)
    harness.registry.register(crashing_tool)
    await harness.call(crashing_tool)

    # The report of a captured log travels between test processes, which only text can do.
    with caplog.at_level(logging.CRITICAL, logger="fairlead_tools.calls.tool_run"):
        assert await harness.serve_all() == ["Tool execution failed: \\ud800"]


async def test_a_call_that_takes_too_long_is_cancelled_from_outside(harness: Harness) -> None:
    """E-07: the worker enforces the timeout, not the tool."""
    gate = Gate()
    echo_tool = tool(execute=gate, timeout_s=0.01)
    harness.registry.register(echo_tool)
    await harness.call(echo_tool)

    assert await harness.serve_all() == ["Tool execution failed: timed out after 0.01 s"]
    (failed,) = [event for event in await harness.events() if isinstance(event, ToolFailed)]
    assert failed.error.outcome == "unknown"
    assert gate.cancelled == 1


async def test_what_the_log_cannot_hold_fails_the_call_instead_of_losing_it(
    harness: Harness,
) -> None:
    """J-33: a result too large for one commit, or with text that is not valid."""
    outputs: dict[str, Any] = {"large": "x" * (9 * 1024 * 1024), "odd": "\ud800"}

    async def run(request: EchoInput, _context: CallContext) -> EchoOutput:
        return EchoOutput.model_construct(said=outputs[request.key])

    echo_tool = tool(execute=run, output=RootModel[dict[str, Any]])
    harness.registry.register(echo_tool)
    await harness.call(echo_tool, id_="call_1", key="large")
    await harness.call(echo_tool, id_="call_2", key="odd")

    messages = await harness.serve_all()

    assert len(messages) == 2
    assert all(message.startswith("Tool execution failed: ") for message in messages)


async def test_text_is_told_as_text(harness: Harness) -> None:
    """J-21: without a projection a string becomes one text item."""

    async def run(_request: EchoInput, _context: CallContext) -> str:
        return "hello"

    echo_tool = tool(execute=run, output=RootModel[str])
    harness.registry.register(echo_tool)
    await harness.call(echo_tool)
    await harness.serve_all()

    event = (await harness.events())[-1]
    assert isinstance(event, ToolSucceeded)
    assert (event.structured, event.content) == ({}, (TextContent(text="hello"),))
