"""Every verb over NATS with its scope. HTTP operations and NATS grants follow this table."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from fairlead_schema.identity.scopes import Scope

VerbService: TypeAlias = Literal["ingest", "tools"]


@dataclass(frozen=True, slots=True)
class VerbRule:
    """Who serves a verb, and which scope a caller needs. Without a scope only services may call."""

    service: VerbService
    scope: Scope | None


def _ingest(scope: Scope | None) -> VerbRule:
    return VerbRule("ingest", scope)


def _tools(scope: Scope | None) -> VerbRule:
    return VerbRule("tools", scope)


VERBS: Final[dict[str, VerbRule]] = {
    "session.create": _ingest("session:write"),
    "session.prompt": _ingest("session:write"),
    "session.cancel": _ingest("session:write"),
    "session.edit": _ingest("session:write"),
    "session.interrupt": _ingest("session:write"),
    "session.resume": _ingest("session:write"),
    "session.agent": _ingest("session:write"),
    "session.model": _ingest("session:write"),
    "session.move": _ingest("session:write"),
    "session.archive": _ingest("session:write"),
    "session.compact": _ingest("session:write"),
    "session.budget": _ingest("session:write"),
    "session.shell": _ingest("session:write"),
    "session.skill": _ingest("session:write"),
    "session.pending": _ingest("session:read"),
    "session.get": _ingest("session:read"),
    "session.delete": _ingest("session:purge"),
    "permission.ask": _ingest("session:write"),
    "permission.reply": _ingest("ask:reply"),
    "permission.approve": _ingest("approval:save"),
    "permission.list": _ingest("session:read"),
    "permission.get": _ingest("session:read"),
    "permission.recheck": _ingest(None),
    "question.reply": _ingest("ask:reply"),
    "question.reject": _ingest("ask:reply"),
    "question.list": _ingest("session:read"),
    "feed.open": _ingest("session:read"),
    "approval.list": _ingest("session:read"),
    "approval.remove": _ingest("approval:save"),
    "ask.expire": _ingest(None),
    "tool.register": _tools("tool:register"),
    "tool.unregister": _tools("tool:register"),
    "tool.list": _tools("tool:register"),
    "tool.settle": _tools("tool:register"),
    "source.register": _tools("source:register"),
    "source.remove": _tools("source:register"),
}
"""The answer "always" needs `approval:save`: tenants' own clients send it with `permission.approve`."""
