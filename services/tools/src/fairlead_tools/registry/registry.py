"""Where tools are registered: what may be called here, and which registration answers."""

import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from pydantic import BaseModel, PydanticUserError, ValidationError

from fairlead_schema.ids import DEFAULT_TENANT, TenantId
from fairlead_schema.permission import PermissionRule
from fairlead_schema.tools.request import ToolCatalog
from fairlead_session.calls.lifecycle import Failed
from fairlead_session.people.permission import is_hidden
from fairlead_session.state.calls import UnsettledCall
from fairlead_tools.registry.tool import Tool

log = logging.getLogger(__name__)

NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
VIEWS_MAX: Final = 1024
PROCESS: Final = "process"


class InvalidTool(Exception):
    """A tool that cannot be registered. Says which, and why."""


class Scope(NamedTuple):
    """For whom and where tools are looked up."""

    tenant: TenantId = DEFAULT_TENANT
    directory: str | None = None


ANYWHERE: Final = Scope()


@dataclass(frozen=True, eq=False, slots=True)
class Registration:
    """One registration of a tool; it removes itself and nothing else.

    Without a tenant it is everybody's, without a directory it is offered everywhere. `rank` orders
    those who register: whoever ranks higher comes later, in every process alike.
    """

    tool: Tool
    tenant: TenantId | None = None
    directory: str | None = None
    owner: str = PROCESS
    rank: int = 0
    except_tenants: frozenset[TenantId] = frozenset()

    def is_visible(self, scope: Scope) -> bool:
        """Whether it is offered there."""
        if scope.tenant in self.except_tenants:
            return False
        return self.tenant in {None, scope.tenant} and self.directory in {None, scope.directory}


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """A call that may run: its tool and its decoded input."""

    tool: Tool
    input: BaseModel


class Refresh(Protocol):
    """Learns what others have registered for a scope; may leave everything as it is."""

    async def __call__(self, scope: Scope, *, sure: bool = False) -> None: ...


class Registry:
    """The tools that one process knows: its own, and what is registered with it.

    Location registrations answer before those that hold everywhere; among equals the latest does.
    All of them are one tuple, replaced as a whole: nobody ever sees half of a change.
    """

    def __init__(self, refresh: Refresh | None = None) -> None:
        self._all: tuple[Registration, ...] = ()
        self._views: dict[Scope, dict[str, Tool]] = {}
        self._refresh = refresh

    def refresh_with(self, refresh: Refresh) -> None:
        """Ask there before answering what is offered."""
        self._refresh = refresh

    def register(
        self, tool: Tool, *, tenant: TenantId | None = None, directory: str | None = None
    ) -> Registration:
        """Offer a tool from now on. Raises InvalidTool, and then nothing has changed."""
        made = Registration(check_tool(tool), tenant, directory)
        self._replace((*self._all, made))
        return made

    def remove(self, registration: Registration) -> None:
        """Take one registration away; what it shadowed answers again."""
        self._replace(tuple(one for one in self._all if one is not registration))

    def replace_owned(self, owner: str, registrations: Iterable[Registration]) -> None:
        """Let an owner's registrations be exactly these. Raises InvalidTool, and nothing changes."""
        made = tuple(registrations)
        for one in made:
            assert one.owner == owner, "an owner speaks for itself"
            check_tool(one.tool)
        self._replace((*(one for one in self._all if one.owner != owner), *made))

    def is_builtin(self, name: str) -> bool:
        """Whether the process itself offers a tool of this name."""
        return any(one.tool.name == name and one.owner == PROCESS for one in self._all)

    def find(self, name: str, scope: Scope = ANYWHERE) -> Tool | None:
        """The tool that answers to a name there now."""
        return self._view(scope).get(name)

    def catalog(
        self, scope: Scope = ANYWHERE, rules: tuple[PermissionRule, ...] = ()
    ) -> ToolCatalog:
        """What may be called there now, in order; a shadow keeps the shadowed place.

        What the rules wholly deny is not shown. That is no authority: a call is judged when it comes.
        """
        tools = self._view(scope).values()
        shown = (tool.info for tool in tools if not is_hidden(rules, tool.permission))
        return ToolCatalog(tools=tuple(shown))

    async def refresh(self, scope: Scope, *, sure: bool = False) -> None:
        """Know what is registered for a scope, as far as that can be known now."""
        if self._refresh is not None:
            await self._refresh(scope, sure=sure)

    async def refresh_for_call(self, call: UnsettledCall, scope: Scope) -> None:
        """Learn before a call is judged: unless its own tool answers, which needs no news."""
        tool = self.find(call.tool, scope)
        if tool is None or tool.remote or tool.info.revision != call.revision:
            await self.refresh(scope, sure=True)

    def _replace(self, registrations: tuple[Registration, ...]) -> None:
        # Sorting is stable: what one owner registers stays in its order.
        self._all = tuple(sorted(registrations, key=lambda one: one.rank))
        self._views.clear()

    def _view(self, scope: Scope) -> dict[str, Tool]:
        view = self._views.get(scope)
        if view is None:
            seen = [one for one in self._all if one.is_visible(scope)]
            layers = (
                *(one for one in seen if one.directory is None),
                *(one for one in seen if one.directory is not None),
            )
            view = {one.tool.name: one.tool for one in layers}
            if len(self._views) >= VIEWS_MAX:
                self._views.clear()
            self._views[scope] = view
        return view

    def prepare(self, call: UnsettledCall, scope: Scope = ANYWHERE) -> PreparedCall | Failed:
        """The tool and its input, or why the call never runs."""
        if call.revision is None:
            return Failed(f"Unknown tool: {call.tool}")
        tool = self.find(call.tool, scope)
        if tool is None or tool.info.revision != call.revision:
            # Removed, replaced or revealed since it was advertised.
            return Failed(f"Stale tool call: {call.tool}")
        try:
            return PreparedCall(tool, tool.input.model_validate(dict(call.input)))
        except ValidationError as error:
            return Failed(f"Invalid tool input: {describe_errors(error)}")
        except Exception as error:
            # A validator is the tool's own code: its crash is this call's failure.
            log.exception("input cannot be checked", extra={"tool": call.tool})
            return Failed(f"Tool execution failed: {error}")


def check_tool(tool: Tool) -> Tool:
    """The tool, if it can be advertised and bounded. Raises InvalidTool."""
    if NAME.fullmatch(tool.name) is None:
        raise InvalidTool(f"{tool.name!r} is no tool name: it must match {NAME.pattern}")
    if tool.timeout_s <= 0:
        raise InvalidTool(f"{tool.name} needs a positive timeout, not {tool.timeout_s}")
    try:
        assert tool.info.revision
    except PydanticUserError as error:
        raise InvalidTool(f"{tool.name} has a model without a JSON schema: {error}") from error
    return tool


def describe_errors(error: ValidationError) -> str:
    """What does not fit, one thing after another, without links or values."""
    return "; ".join(
        ": ".join(part for part in (".".join(map(str, one["loc"])), one["msg"]) if part)
        for one in error.errors(include_url=False, include_input=False, include_context=False)
    )
