"""A tool's definition is built once, its input is decoded, and its output is encoded."""

from datetime import date

from pydantic import BaseModel, Field

from fairlead_schema.events import ToolSucceeded
from fairlead_schema.tools.content import Json, TextContent, ToolContent
from fairlead_tools.registry.tool import CallContext
from services.tools.tests.conftest import Harness, tool


class Day(BaseModel):
    """A day, which is text on the wire."""

    on: date = Field(alias="onDay")


def test_a_definition_is_made_once(harness: Harness) -> None:
    """J-16: every turn gets the same value."""
    harness.registry.register(tool())

    (first,), (second,) = harness.registry.catalog().tools, harness.registry.catalog().tools

    assert first is second


async def test_a_tool_sees_decoded_input_and_its_readers_encoded_output(harness: Harness) -> None:
    """J-19: the projection and the structured value have the form of the wire."""
    days: list[date] = []

    async def run(day: Day, _context: CallContext) -> Day:
        days.append(day.on)
        return day

    def project(output: Json) -> tuple[ToolContent, ...]:
        return (TextContent(text=repr(output)),)

    day_tool = tool(execute=run, input=Day, output=Day, project=project)
    harness.registry.register(day_tool)
    await harness.call(day_tool, onDay="2026-11-16")
    await harness.serve_all()

    event = (await harness.events())[-1]
    assert days == [date(2026, 11, 16)]
    assert isinstance(event, ToolSucceeded)
    assert event.structured == {"onDay": "2026-11-16"}
    assert event.content == (TextContent(text="{'onDay': '2026-11-16'}"),)
