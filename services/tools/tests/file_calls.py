"""Calls of file tools in a real directory: the required permissions first, then the run."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairlead_schema.location import LocationRef
from fairlead_session.calls.lifecycle import Failed, Succeeded
from fairlead_session.people.permission import Need
from fairlead_tools.calls.tool_run import ToolRun
from fairlead_tools.registry.registry import PreparedCall
from fairlead_tools.registry.tool import CallContext, CallFailed, Tool
from services.tools.tests.conftest import AT


def call_context(directory: Path) -> CallContext:
    """The context of a call at a location."""
    return CallContext(
        AT, LocationRef(directory=str(directory)), "build", "msg_a", "call_a", "wrk_a"
    )


async def required_permissions(tool: Tool, directory: Path, **fields: Any) -> tuple[Need, ...]:  # noqa: ANN401
    """The permissions that a call needs."""
    return await tool.required_permissions(
        tool.input.model_validate(fields), call_context(directory)
    )


async def try_call(
    tool: Tool,
    directory: Path,
    *,
    while_deciding: Callable[[], object] = lambda: None,
    **fields: Any,  # noqa: ANN401
) -> Succeeded | Failed:
    """Ask for permissions, run a hook while a person decides, then run the call."""
    input_ = tool.input.model_validate(fields)
    try:
        needs = await tool.required_permissions(input_, call_context(directory))
    except CallFailed as error:
        return Failed(str(error))
    await asyncio.to_thread(while_deciding)
    at = replace(call_context(directory), permitted=needs)
    result = await ToolRun(PreparedCall(tool, input_), at).result()
    assert isinstance(result, Succeeded | Failed)
    return result


async def run_call(tool: Tool, directory: Path, **fields: Any) -> Succeeded:  # noqa: ANN401
    """The result of a call that must succeed."""
    result = await try_call(tool, directory, **fields)
    assert isinstance(result, Succeeded), result
    return result


async def failure_of(tool: Tool, directory: Path, **fields: Any) -> str:  # noqa: ANN401
    """The message of a call that must fail."""
    result = await try_call(tool, directory, **fields)
    assert isinstance(result, Failed), result
    return result.message


def text(result: Succeeded) -> str:
    """The text for the model."""
    return "".join(part.text for part in result.content if part.type == "text")
