"""The verbs of application tools: register, unregister, list, and settle a queued call."""

import asyncio
from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias

from faststream import Context

from fairlead_eventlog.errors import SessionErased
from fairlead_eventlog.ports import ClientConsumers
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
from fairlead_schema.errors import Conflict, InvalidRequest, Refused
from fairlead_schema.ids import TenantId
from fairlead_schema.subjects import Address
from fairlead_service.audit import audit_command
from fairlead_service.rpc.answers import Refusals
from fairlead_service.rpc.caller import by_own_client, current_caller
from fairlead_service.rpc.server import Handler, RpcServer, TenantParam
from fairlead_session.calls.lifecycle import Outcome
from fairlead_session.fold.calls import find_call
from fairlead_session.state.calls import UnsettledCall
from fairlead_session.state.session import Session
from fairlead_tools.calls.lifecycle import CallLifecycle
from fairlead_tools.registry.application.calls import result_from_answer
from fairlead_tools.registry.application.records import ToolRecords
from fairlead_tools.registry.json_schema import Document
from fairlead_tools.registry.outcome import encode_output, tool_failure
from fairlead_tools.registry.registry import Registry, Scope
from fairlead_tools.registry.tool import CallFailed, Tool

# The pauses before an open call is read again that does not wait in a queue yet.
READ_PAUSES_S: Final = (0.01, 0.05, 0.2, 0.5, 1.0, 2.0)


@dataclass(frozen=True, slots=True)
class ToolVerbs:
    """Performs the verbs of application tools."""

    records: ToolRecords
    registry: Registry
    calls: CallLifecycle
    consumers: ClientConsumers
    read_pauses_s: tuple[float, ...] = READ_PAUSES_S

    async def register(self, tenant: TenantId, command: RegisterTool) -> RegisteredTool:
        """Register a tool. The queue of a tenant's own client gets a consumer to pull from."""
        caller = current_caller()
        if command.mode != "queue" or caller is None or not by_own_client():
            return await self.records.register(tenant, command)
        prefix = f"{subjects.queued_tool_prefix(tenant)}{caller}."
        if not command.subject.startswith(prefix):
            reason = f"subject: your queue must begin with {prefix}"
            raise InvalidRequest(reason, kind="Body", field="subject")
        registered = await self.records.register(tenant, command)
        await self.consumers.open_jobs(tenant, caller)
        return registered

    async def unregister(self, tenant: TenantId, command: ToolRegistrationKey) -> ToolUnregistered:
        return ToolUnregistered(
            name=command.name, removed=await self.records.unregister(tenant, command)
        )

    async def list_tools(self, tenant: TenantId, _command: ListRegisteredTools) -> RegisteredTools:
        return RegisteredTools(tools=await self.records.list_tools(tenant))

    async def settle(self, tenant: TenantId, command: SettleTool) -> CallSettled:
        """Settle a call that waits in a queue. Raises Conflict for any other call."""
        at = Address(tenant, command.session_id)
        session, call = await self._find_waiting(at, command)
        answer = await self._outcome(session, call, at, command)
        if not await self.calls.settle(at, call, answer):
            raise Conflict("The call is not waiting for a settlement", command.call_id)
        return CallSettled(session_id=command.session_id, call_id=command.call_id)

    async def _find_waiting(
        self, at: Address, command: SettleTool
    ) -> tuple[Session, UnsettledCall]:
        """The call that waits in a queue. Raises Conflict if there is none.

        A service may answer before the worker has recorded that the call waits in a queue. So the
        log is read again for a few seconds before the answer is refused.
        """
        for pause_s in (*self.read_pauses_s, None):
            session = await self.calls.read(at)
            call = find_call(session, command.assistant_message_id, command.call_id)
            if call is not None and call.deferred_until is not None:
                return session, call
            if call is None or pause_s is None:
                break
            await asyncio.sleep(pause_s)
        raise Conflict("The call is not waiting for a settlement", command.call_id)

    async def _outcome(
        self, session: Session, call: UnsettledCall, at: Address, command: SettleTool
    ) -> Outcome:
        try:
            result = result_from_answer(command)
        except CallFailed as error:
            return tool_failure(str(error))
        return encode_output(await self._tool(session, call, at), result)

    async def _tool(self, session: Session, call: UnsettledCall, at: Address) -> Tool:
        """The tool whose schema the output must fit. For a tool that has changed, any output fits."""
        assert session.profile is not None, "a session with calls was created"
        scope = Scope(at.tenant, session.profile.location.directory)
        await self.registry.refresh(scope, sure=True)
        tool = self.registry.find(call.tool, scope)
        if tool is not None and tool.info.revision == call.revision:
            return tool
        return Tool(call.tool, "", Document, Document, execute=_never_run)


def _session_deleted(error: SessionErased) -> Refused:
    return Conflict("The session is gone", error.at.session_id)


REFUSALS: Final[Refusals] = {**LOG_REFUSALS, SessionErased: _session_deleted}
TOOL_VERBS: Final = "tool_verbs"
VerbsDep: TypeAlias = Annotated[ToolVerbs, Context(TOOL_VERBS)]
"""The ToolVerbs that the server passes to each handler."""


async def register(verbs: VerbsDep, tenant: TenantParam, command: RegisterTool) -> RegisteredTool:
    """`tool.register`"""
    registered = await verbs.register(tenant, command)
    audit_command("tool.register", tenant, command.name)
    return registered


async def unregister(
    verbs: VerbsDep, tenant: TenantParam, command: ToolRegistrationKey
) -> ToolUnregistered:
    """`tool.unregister`"""
    unregistered = await verbs.unregister(tenant, command)
    audit_command("tool.unregister", tenant, command.name)
    return unregistered


async def list_registered(
    verbs: VerbsDep, tenant: TenantParam, command: ListRegisteredTools
) -> RegisteredTools:
    """`tool.list`"""
    return await verbs.list_tools(tenant, command)


async def settle(verbs: VerbsDep, tenant: TenantParam, command: SettleTool) -> CallSettled:
    """`tool.settle`"""
    return await verbs.settle(tenant, command)


def serve_tool_verbs(server: RpcServer) -> None:
    """Serve the verbs for every tenant."""
    handlers: dict[str, Handler] = {
        "tool.register": register,
        "tool.unregister": unregister,
        "tool.list": list_registered,
        "tool.settle": settle,
    }
    for verb, handler in handlers.items():
        server.serve_verb(verb, handler)


async def _never_run(_request: object, _context: object) -> object:
    raise AssertionError("never run")
