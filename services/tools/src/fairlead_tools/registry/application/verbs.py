"""The verbs of application tools: register, unregister, list, and settle a queued call."""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from fairlead_eventlog.errors import LogError
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
from fairlead_schema.errors import (
    Conflict,
    InternalFailure,
    InvalidRequest,
    Refused,
    ServiceUnavailable,
)
from fairlead_schema.ids import TenantId
from fairlead_schema.model import Model
from fairlead_schema.record import RecordError
from fairlead_schema.subjects import Address
from fairlead_service.rpc import RpcServer
from fairlead_session.calls.lifecycle import Outcome
from fairlead_session.fold.calls import find
from fairlead_session.state import Session, UnsettledCall
from fairlead_tools.calls.execution import encoded, failed
from fairlead_tools.calls.lifecycle import Life
from fairlead_tools.calls.log import Erased
from fairlead_tools.registry.application.calls import outcome
from fairlead_tools.registry.application.records import Records
from fairlead_tools.registry.json_schema import Document
from fairlead_tools.registry.registry import Registry, Scope
from fairlead_tools.registry.tool import CallFailed, Tool

log = logging.getLogger(__name__)

# How often, and after how long, an open call is looked at that does not wait in a queue yet.
LOOKS_S: Final = (0.01, 0.05, 0.2, 0.5, 1.0, 2.0)

Command = TypeVar("Command", bound=Model)
_TENANT: TypeAdapter[str] = TypeAdapter(TenantId)


@dataclass(frozen=True, slots=True)
class Desk:
    """What the verbs work with."""

    records: Records
    registry: Registry
    life: Life

    async def register(self, tenant: TenantId, asked: RegisterTool) -> RegisteredTool:
        return await self.records.register(tenant, asked)

    async def unregister(self, tenant: TenantId, asked: ToolRegistrationKey) -> ToolUnregistered:
        return ToolUnregistered(
            name=asked.name, removed=await self.records.unregister(tenant, asked)
        )

    async def listed(self, tenant: TenantId, _asked: ListRegisteredTools) -> RegisteredTools:
        return RegisteredTools(tools=await self.records.listed(tenant))

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
            call = find(session, asked.assistant_message_id, asked.call_id)
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
            result = outcome(asked)
        except CallFailed as error:
            return failed(str(error))
        return encoded(await self._tool(session, call, at), result)

    async def _tool(self, session: Session, call: UnsettledCall, at: Address) -> Tool:
        """The tool whose schema the output must fit; of one that changed since, any output fits."""
        assert session.profile is not None, "a session with calls was created"
        scope = Scope(at.tenant, session.profile.location.directory)
        await self.registry.learn(scope, sure=True)
        tool = self.registry.find(call.tool, scope)
        if tool is not None and tool.info.revision == call.revision:
            return tool
        return Tool(call.tool, "", Document, Document, execute=_nowhere)


def serve(carrier: RpcServer, desk: Callable[[], Desk]) -> None:
    """Answer the verbs for every tenant."""
    _verb(carrier, "tool.register", RegisterTool, lambda t, asked: desk().register(t, asked))
    _verb(
        carrier,
        "tool.unregister",
        ToolRegistrationKey,
        lambda t, asked: desk().unregister(t, asked),
    )
    _verb(carrier, "tool.list", ListRegisteredTools, lambda t, asked: desk().listed(t, asked))
    _verb(carrier, "tool.settle", SettleTool, lambda t, asked: desk().settle(t, asked))


def _verb(
    carrier: RpcServer,
    verb: str,
    command: type[Command],
    perform: Callable[[TenantId, Command], Awaitable[Model]],
) -> None:
    async def reply(subject: str, body: bytes) -> bytes:
        return await answered(subject.split(".")[2], body, command, perform)

    carrier.respond(
        subjects.api("*", verb), queue="tools", title=verb, command=command, reply=reply
    )


async def answered(
    tenant: str,
    body: bytes,
    command: type[Command],
    perform: Callable[[TenantId, Command], Awaitable[Model]],
) -> bytes:
    """Serve one request; whatever happens, the caller gets an answer."""
    try:
        asked = command.model_validate_json(body or b"{}")
        return to_json({"data": (await perform(_TENANT.validate_python(tenant), asked)).wire()})
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or None
        reason = f"{field}: {first['msg']}" if field else first["msg"]
        return _refusal(InvalidRequest(reason, kind="Body", field=field))
    except Refused as refused:
        return _refusal(refused)
    except (LogError, RecordError) as error:
        return _refusal(
            ServiceUnavailable(f"The log is unavailable: {error}", service="session.log")
        )
    except Erased as error:
        return _refusal(Conflict("The session is gone", str(error)))
    except Exception:
        ref = f"err_{secrets.token_hex(4)}"
        log.exception("defect", extra={"ref": ref})
        return _refusal(InternalFailure("Unexpected server error", ref=ref))


def _refusal(refused: Refused) -> bytes:
    return to_json({"error": refused.body.wire()})


async def _nowhere(_asked: object, _context: object) -> object:
    raise AssertionError("never run")
