"""`todowrite`: replaces the task list of the session, in the commit that settles the call."""

import json

from pydantic import BaseModel, Field

from fairlead_schema.events import TodoUpdated
from fairlead_schema.events.asks import Todo
from fairlead_schema.tools.content import Json, TextContent, ToolContent
from fairlead_tools.registry.tool import CallContext, Result, Tool


class Todos(BaseModel):
    """The whole list in order. A missing task is removed."""

    todos: list[Todo] = Field(max_length=1000)


def tool() -> Tool:
    """The tool."""
    return Tool(
        name="todowrite",
        description=(
            "Write down the list of tasks of this session, so that the user can follow. Always send"
            " the whole list: it replaces the one before."
        ),
        input=Todos,
        output=Todos,
        execute=_write,
        project=_project,
        retry="pure",
    )


async def _write(request: Todos, _context: CallContext) -> Result:
    return Result(request, facts=(TodoUpdated(todos=tuple(request.todos)),))


def _project(output: Json) -> tuple[ToolContent, ...]:
    todos = output["todos"] if isinstance(output, dict) else []
    return (TextContent(text=json.dumps(todos, indent=2, ensure_ascii=False)),)
