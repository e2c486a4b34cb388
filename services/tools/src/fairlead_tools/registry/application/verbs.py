"""The verbs of application tools: register, unregister, list, and settle a queued call."""

import asyncio
from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias

from faststream import Context

from fairlead_eventlog.errors import SessionErased
from fairlead_eventlog.refusals import LOG_REFUSALS
from fairlead_schema import subjects
from fairlead_schema.commands.application_tools import (
    CallSettled,
    ListRegisteredTools,
    RegisteredTool,
    RegisteredTools,
    RegisterTool,
    SettleTool,
    ToolRegistrationKey,
    ToolUnregistered,
)
from fairlead_schema.errors import Conflict, Refused
from fairlead_schema.ids import TenantId
from fairlead_schema.subjects import Address
from fairlead_service.rpc.answers import Refusals
from fairlead_service.rpc.server import ANY_TENANT, Handler, RpcServer, TenantParam
from fairlead_session.calls.lifecycle import Outcome
from fairlead_session.fold.calls import find_call
from fairlead_session.state.calls import UnsettledCall
from fairlead_session.state.session import Session
from fairlead_tools.calls.execution import encode_output, tool_failure
from fairlead_tools.calls.lifecycle import CallLifecycle
from fairlead_tools.registry.application.calls import answer_result
from fairlead_tools.registry.application.records import ToolRecords
from fairlead_tools.registry.json_schema import Document
from fairlead_tools.registry.registry import Registry, Scope
from fairlead_tools.registry.tool import CallFailed, Tool

# How often, and after how long, an open call is looked at that does not wait in a queue yet.
LOOKS_S: Final = (0.01, 0.05, 0.2, 0.5, 1.0, 2.0)


@dataclass(frozen=True, slots=True)
class ToolVerbs:
    """What the verbs work with."""

    records: ToolRecords
    registry: Registry
    life: CallLifecycle

    async def register(self, tenant: TenantId, asked: RegisterTool) -> RegisteredTool:
        return await self.records.register(tenant, asked)

    async def unregister(self, tenant: TenantId, asked: ToolRegistrationKey) -> ToolUnregistered:
        return ToolUnregistered(
            name=asked.name, removed=await self.records.unregister(tenant, asked)
        )

    async def list_tools(self, tenant: TenantId, _asked: ListRegisteredTools) -> RegisteredTools:
        return RegisteredTools(tools=await self.records.list_tools(tenant))

    async def settle(self, tenant: TenantId, asked: SettleTool) -> CallSettled:
        """Settle a call that waits in a queue, once. Raises Conflict for any other."""
        at = Address(tenant, asked.session_id)
        session, call = await self._waiting(at, asked)
        answer = await self._outcome(session, call, at, asked)
        end = await self.life.conclude(at, call, answer)
        if end in {"late", "lost"}:
            raise Conflict("The call is not waiting for a settlement", asked.call_id)
        return CallSettled(session_id=asked.session_id, call_id=asked.call_id)

    async def _waiting(self, at: Address, asked: SettleTool) -> tuple[Session, UnsettledCall]:
        """The call that waits in a queue. Raises Conflict if there is none.

        A service may be quicker than the worker that left it the call: before its answer is refused,
        the log has a moment to say that the call was left.
        """
        for pause_s in (*LOOKS_S, None):
            session = await self.life.read(at)
            call = find_call(session, asked.assistant_message_id, asked.call_id)
            if call is not None and call.deferred_until is not None:
                return session, call
            if call is None or pause_s is None:
                break
            await asyncio.sleep(pause_s)
        raise Conflict("The call is not waiting for a settlement", asked.call_id)

    async def _outcome(
        self, session: Session, call: UnsettledCall, at: Address, asked: SettleTool
    ) -> Outcome:
        try:
            result = answer_result(asked)
        except CallFailed as error:
            return tool_failure(str(error))
        return encode_output(await self._tool(session, call, at), result)

    async def _tool(self, session: Session, call: UnsettledCall, at: Address) -> Tool:
        """The tool whose schema the output must fit; of one that changed since, any output fits."""
        assert session.profile is not None, "a session with calls was created"
        scope = Scope(at.tenant, session.profile.location.directory)
        await self.registry.refresh(scope, sure=True)
        tool = self.registry.find(call.tool, scope)
        if tool is not None and tool.info.revision == call.revision:
            return tool
        return Tool(call.tool, "", Document, Document, execute=_nowhere)


def _session_deleted(error: SessionErased) -> Refused:
    return Conflict("The session is gone", error.at.session_id)


REFUSALS: Final[Refusals] = {**LOG_REFUSALS, SessionErased: _session_deleted}
DESK: Final = "desk"
DeskDep: TypeAlias = Annotated[ToolVerbs, Context(DESK)]
"""The desk that the server of the verbs gives to each handler."""


async def register(desk: DeskDep, tenant: TenantParam, command: RegisterTool) -> RegisteredTool:
    """`tool.register`"""
    return await desk.register(tenant, command)


async def unregister(
    desk: DeskDep, tenant: TenantParam, command: ToolRegistrationKey
) -> ToolUnregistered:
    """`tool.unregister`"""
    return await desk.unregister(tenant, command)


async def list_registered(
    desk: DeskDep, tenant: TenantParam, command: ListRegisteredTools
) -> RegisteredTools:
    """`tool.list`"""
    return await desk.list_tools(tenant, command)


async def settle(desk: DeskDep, tenant: TenantParam, command: SettleTool) -> CallSettled:
    """`tool.settle`"""
    return await desk.settle(tenant, command)


def serve(server: RpcServer) -> None:
    """Serve the verbs for every tenant."""
    handlers: dict[str, Handler] = {
        "tool.register": register,
        "tool.unregister": unregister,
        "tool.list": list_registered,
        "tool.settle": settle,
    }
    for verb, handler in handlers.items():
        server.serve(verb, subjects.api(ANY_TENANT, verb), handler)


async def _nowhere(_asked: object, _context: object) -> object:
    raise AssertionError("never run")
