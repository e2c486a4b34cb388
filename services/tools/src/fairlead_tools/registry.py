"""Where tools are registered: what may be called here, and which registration answers."""

import logging
import re
from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel, PydanticUserError, ValidationError

from fairlead_schema.permission import Rule
from fairlead_schema.tooling import ToolCatalog
from fairlead_session.calling import Failed
from fairlead_session.permission import hidden
from fairlead_session.state import Call
from fairlead_tools.tool import Tool

log = logging.getLogger(__name__)

NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


class InvalidTool(Exception):
    """A tool that cannot be registered. Says which, and why."""


@dataclass(frozen=True, eq=False, slots=True)
class Registration:
    """One registration of a tool; it removes itself and nothing else."""

    tool: Tool
    revision: str


@dataclass(frozen=True, slots=True)
class Prepared:
    """A call that may run: its tool and its decoded input."""

    tool: Tool
    input: BaseModel


class Registry:
    """The tools of one process. The latest registration of a name answers to it."""

    def __init__(self) -> None:
        self._layers: dict[str, tuple[Registration, ...]] = {}

    def register(self, tool: Tool) -> Registration:
        """Offer a tool from now on. Raises InvalidTool."""
        if NAME.fullmatch(tool.name) is None:
            raise InvalidTool(f"{tool.name!r} is no tool name: it must match {NAME.pattern}")
        if tool.timeout_s <= 0:
            raise InvalidTool(f"{tool.name} needs a positive timeout, not {tool.timeout_s}")
        try:
            made = Registration(tool, tool.info.revision)
        except PydanticUserError as error:
            raise InvalidTool(f"{tool.name} has a model without a JSON schema: {error}") from error
        self._layers[tool.name] = (*self._layers.get(tool.name, ()), made)
        return made

    def remove(self, registration: Registration) -> None:
        """Take one registration away; what it shadowed answers again."""
        name = registration.tool.name
        rest = tuple(one for one in self._layers.get(name, ()) if one is not registration)
        if rest:
            self._layers[name] = rest
        else:
            self._layers.pop(name, None)

    def find(self, name: str) -> Tool | None:
        """The tool that answers to a name now."""
        layers = self._layers.get(name)
        return layers[-1].tool if layers else None

    def catalog(self, rules: tuple[Rule, ...] = ()) -> ToolCatalog:
        """What may be called now, in order of registration; a shadow keeps the shadowed place.

        What the rules wholly deny is not shown. That is no authority: a call is judged when it comes.
        """
        tools = (layers[-1].tool for layers in self._layers.values())
        shown = (tool.info for tool in tools if not hidden(rules, tool.permission))
        return ToolCatalog(tools=tuple(shown))

    def prepare(self, call: Call) -> Prepared | Failed:
        """The tool and its input, or why the call never runs."""
        if call.revision is None:
            return Failed(f"Unknown tool: {call.tool}")
        tool = self.find(call.tool)
        if tool is None or tool.info.revision != call.revision:
            # Removed, replaced or revealed since it was advertised.
            return Failed(f"Stale tool call: {call.tool}")
        try:
            return Prepared(tool, tool.input.model_validate(dict(call.input)))
        except ValidationError as error:
            return Failed(f"Invalid tool input: {told(error)}")
        except Exception as error:
            # A validator is the tool's own code: its crash is this call's failure.
            log.exception("input cannot be checked", extra={"tool": call.tool})
            return Failed(f"Tool execution failed: {error}")


def told(error: ValidationError) -> str:
    """What does not fit, one thing after another, without links or values."""
    return "; ".join(
        ": ".join(part for part in (".".join(map(str, one["loc"])), one["msg"]) if part)
        for one in error.errors(include_url=False, include_input=False, include_context=False)
    )
