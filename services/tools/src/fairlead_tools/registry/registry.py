"""The registry of tools: which tools may be called where, and which registration answers."""

import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from pydantic import BaseModel, PydanticUserError

from fairlead_schema.ids import DEFAULT_TENANT, TenantId
from fairlead_schema.permission import PermissionRule
from fairlead_schema.tools.request import ToolCatalog
from fairlead_session.calls.lifecycle import Failed
from fairlead_session.people.permission import is_hidden
from fairlead_session.state.calls import UnsettledCall
from fairlead_tools.registry.call_input import InvalidArguments, decode_input
from fairlead_tools.registry.tool import InvalidTool, Tool

log = logging.getLogger(__name__)

NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
VIEWS_MAX: Final = 1024
PROCESS: Final = "process"


class Scope(NamedTuple):
    """The tenant and the directory for which tools are looked up."""

    tenant: TenantId = DEFAULT_TENANT
    directory: str | None = None


ANYWHERE: Final = Scope()


@dataclass(frozen=True, eq=False, slots=True)
class Registration:
    """One registration of a tool.

    Without a tenant it is for all tenants, without a directory for all directories. A higher `rank`
    comes later, so that every process has the same order.
    """

    tool: Tool
    tenant: TenantId | None = None
    directory: str | None = None
    owner: str = PROCESS
    rank: int = 0
    except_tenants: frozenset[TenantId] = frozenset()

    def is_visible(self, scope: Scope) -> bool:
        """Whether the scope sees this registration."""
        if scope.tenant in self.except_tenants:
            return False
        return self.tenant in {None, scope.tenant} and self.directory in {None, scope.directory}


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """A call that may run: its tool and its decoded input."""

    tool: Tool
    input: BaseModel
    ignored: tuple[str, ...] = ()
    """The arguments that the tool does not have."""


class Refresh(Protocol):
    """Loads what other services have registered for a scope. May change nothing."""

    async def __call__(self, scope: Scope, *, sure: bool = False) -> None: ...


class Registry:
    """The tools that one process knows: its own and the registered ones.

    A registration for a location answers before one for all locations; among equals the latest
    answers. All registrations are one tuple that is replaced whole, so no reader sees half a change.
    """

    def __init__(self, refresh: Refresh | None = None) -> None:
        self._all: tuple[Registration, ...] = ()
        self._views: dict[Scope, dict[str, Tool]] = {}
        self._catalogs: dict[tuple[Scope, tuple[PermissionRule, ...]], ToolCatalog] = {}
        self._refresh = refresh

    def refresh_with(self, refresh: Refresh) -> None:
        """Call `refresh` before each lookup."""
        self._refresh = refresh

    def register(
        self, tool: Tool, *, tenant: TenantId | None = None, directory: str | None = None
    ) -> Registration:
        """Add a tool. Raises InvalidTool and changes nothing."""
        registration = Registration(check_tool(tool), tenant, directory)
        self._replace((*self._all, registration))
        return registration

    def remove(self, registration: Registration) -> None:
        """Remove one registration. A tool that it hid answers again."""
        self._replace(tuple(other for other in self._all if other is not registration))

    def replace_owned(self, owner: str, registrations: Iterable[Registration]) -> None:
        """Replace all registrations of an owner. Raises InvalidTool and changes nothing."""
        owned = tuple(registrations)
        for registration in owned:
            assert registration.owner == owner, "an owner registers in its own name"
            check_tool(registration.tool)
        others = (registration for registration in self._all if registration.owner != owner)
        self._replace((*others, *owned))

    def is_builtin(self, name: str) -> bool:
        """Whether the process itself offers a tool of this name."""
        return any(
            registration.tool.name == name and registration.owner == PROCESS
            for registration in self._all
        )

    def find(self, name: str, scope: Scope = ANYWHERE) -> Tool | None:
        """The tool of that name in a scope, if there is one."""
        return self._view(scope).get(name)

    def catalog(
        self, scope: Scope = ANYWHERE, rules: tuple[PermissionRule, ...] = ()
    ) -> ToolCatalog:
        """The tools of a scope in order. A tool that hides another takes its place in the order.

        A tool that the rules wholly deny is left out. Each call is still checked on its own. Until a
        registration changes, the catalog of a scope and its rules is the same object.
        """
        catalog = self._catalogs.get((scope, rules))
        if catalog is None:
            tools = self._view(scope).values()
            visible = (tool.info for tool in tools if not is_hidden(rules, tool.permission))
            catalog = ToolCatalog(tools=tuple(visible))
            if len(self._catalogs) >= VIEWS_MAX:
                self._catalogs.clear()
            self._catalogs[scope, rules] = catalog
        return catalog

    async def refresh(self, scope: Scope, *, sure: bool = False) -> None:
        """Load the registrations of a scope, as far as they can be read now."""
        if self._refresh is not None:
            await self._refresh(scope, sure=sure)

    async def refresh_for_call(self, call: UnsettledCall, scope: Scope) -> None:
        """Refresh before a call is prepared, unless the process itself has its exact tool."""
        tool = self.find(call.tool, scope)
        if tool is None or tool.remote or tool.info.revision != call.revision:
            await self.refresh(scope, sure=True)

    def _replace(self, registrations: tuple[Registration, ...]) -> None:
        # The sort is stable: the registrations of one owner keep their order.
        self._all = tuple(sorted(registrations, key=lambda registration: registration.rank))
        self._views.clear()
        self._catalogs.clear()

    def _view(self, scope: Scope) -> dict[str, Tool]:
        view = self._views.get(scope)
        if view is None:
            visible = [entry for entry in self._all if entry.is_visible(scope)]
            layers = (
                *(entry for entry in visible if entry.directory is None),
                *(entry for entry in visible if entry.directory is not None),
            )
            view = {entry.tool.name: entry.tool for entry in layers}
            if len(self._views) >= VIEWS_MAX:
                self._views.clear()
            self._views[scope] = view
        return view

    def prepare(self, call: UnsettledCall, scope: Scope = ANYWHERE) -> PreparedCall | Failed:
        """The tool and the decoded input of a call, or why the call never runs."""
        if call.revision is None and not call.by_person:
            return Failed(f"Unknown tool: {call.tool}")
        tool = self.find(call.tool, scope)
        if tool is None and call.by_person:
            return Failed(f"Commands cannot run here: the tool {call.tool} is switched off")
        if tool is None or (tool.info.revision != call.revision and not call.by_person):
            # The tool was removed or replaced after the model saw it.
            return Failed(f"Stale tool call: {call.tool}")
        try:
            return PreparedCall(tool, *decode_input(tool.input, call.input))
        except InvalidArguments as error:
            return Failed(f"Invalid tool input: {error}")
        except Exception as error:
            # A validator is code of the tool: its crash fails this call alone.
            log.exception("input validation crashed: the call fails", extra={"tool": call.tool})
            return Failed(f"Tool execution failed: {error}")


def check_tool(tool: Tool) -> Tool:
    """The tool itself, if its name, timeout and schemas are valid. Raises InvalidTool."""
    if NAME.fullmatch(tool.name) is None:
        raise InvalidTool(f"{tool.name!r} is no tool name: it must match {NAME.pattern}")
    if tool.timeout_s <= 0:
        raise InvalidTool(f"{tool.name} needs a positive timeout, not {tool.timeout_s}")
    try:
        assert tool.info.revision
    except PydanticUserError as error:
        raise InvalidTool(f"{tool.name} has a model without a JSON schema: {error}") from error
    return tool
