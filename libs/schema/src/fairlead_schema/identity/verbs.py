"""Every verb over NATS with its scope. HTTP operations and NATS grants follow this table."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from fairlead_schema.identity.scopes import Scope

VerbService: TypeAlias = Literal["ingest", "tools", "hooks"]


@dataclass(frozen=True, slots=True)
class VerbRule:
    """Who serves a verb, and which scope a caller needs. Without a scope only services may call."""

    service: VerbService
    scope: Scope | None
    repeatable: bool = False
    """Whether the same command may be handled twice: the second time changes nothing.

    The commands of `NEEDS_ID` must name an id for that.
    """


def _ingest(scope: Scope | None) -> VerbRule:
    return VerbRule("ingest", scope)


def _repeatable(scope: Scope) -> VerbRule:
    return VerbRule("ingest", scope, repeatable=True)


def _tools(scope: Scope | None) -> VerbRule:
    return VerbRule("tools", scope)


def _hooks(scope: Scope) -> VerbRule:
    return VerbRule("hooks", scope)


VERBS: Final[dict[str, VerbRule]] = {
    "session.create": _repeatable("session:write"),
    "session.prompt": _repeatable("session:write"),
    "session.upload": _repeatable("session:write"),
    "session.cancel": _repeatable("session:write"),
    "session.edit": _repeatable("session:write"),
    "session.interrupt": _repeatable("session:write"),
    "session.resume": _ingest("session:write"),
    "session.agent": _ingest("session:write"),
    "session.model": _repeatable("session:write"),
    "session.move": _repeatable("session:write"),
    "session.describe": _repeatable("session:write"),
    "session.archive": _repeatable("session:write"),
    "session.unarchive": _repeatable("session:write"),
    "session.compact": _ingest("session:write"),
    "session.budget": _repeatable("session:write"),
    "session.fork": _repeatable("session:write"),
    "session.shell": _repeatable("session:write"),
    "session.skill": _repeatable("session:write"),
    "revert.stage": _repeatable("session:write"),
    "revert.clear": _repeatable("session:write"),
    "revert.commit": _repeatable("session:write"),
    "session.pending": _repeatable("session:read"),
    "session.get": _repeatable("session:read"),
    "session.history": _repeatable("session:read"),
    "session.explain": _repeatable("session:read"),
    "session.wait": _repeatable("session:read"),
    "session.delete": _repeatable("session:purge"),
    "session.store": _repeatable("tenant:admin"),
    "permission.ask": _ingest("session:write"),
    "permission.reply": _repeatable("ask:reply"),
    "permission.approve": _repeatable("approval:save"),
    "permission.list": _repeatable("session:read"),
    "permission.get": _repeatable("session:read"),
    "permission.recheck": _ingest(None),
    "question.reply": _repeatable("ask:reply"),
    "question.reject": _repeatable("ask:reply"),
    "question.list": _repeatable("session:read"),
    "feed.open": _ingest("session:read"),
    "transfer.check": _repeatable("tenant:admin"),
    "transfer.replay": _repeatable("tenant:admin"),
    "transfer.output": _repeatable("tenant:admin"),
    "transfer.claim": _repeatable("tenant:admin"),
    "transfer.page": _repeatable("session:read"),
    "transfer.read": _repeatable("session:read"),
    "approval.list": _repeatable("session:read"),
    "approval.remove": _repeatable("approval:save"),
    "ask.expire": _ingest(None),
    "tool.register": _tools("tool:register"),
    "tool.unregister": _tools("tool:register"),
    "tool.list": _tools("tool:register"),
    "tool.settle": _tools("tool:register"),
    "source.register": _tools("source:register"),
    "source.remove": _tools("source:register"),
    "file.list": _repeatable("session:write"),
    "file.read": _repeatable("session:write"),
    "file.find": _repeatable("session:write"),
    "source.changed": _tools("source:register"),
    "skill.list": _repeatable("session:read"),
    "transform.register": _tools("transform:register"),
    "transform.remove": _tools("transform:register"),
    "transform.list": _tools("transform:register"),
    "webhook.create": _ingest("webhook:manage"),
    "webhook.list": _repeatable("webhook:manage"),
    "webhook.get": _repeatable("webhook:manage"),
    "webhook.change": _ingest("webhook:manage"),
    "webhook.remove": _repeatable("webhook:manage"),
    "webhook.test": _hooks("webhook:manage"),
    "webhook.undelivered": _hooks("webhook:manage"),
    "webhook.redeliver": _hooks("webhook:manage"),
    "schedule.create": _ingest("session:write"),
    "schedule.list": _repeatable("session:read"),
    "schedule.get": _repeatable("session:read"),
    "schedule.change": _ingest("session:write"),
    "schedule.remove": _repeatable("session:write"),
    "hook.purge": _repeatable("tenant:admin"),
}
"""The answer "always" needs `approval:save`: tenants' own clients send it with `permission.approve`."""

LOCATION_VERBS: Final = ("file.list", "file.read", "file.find", "skill.list")
"""Verbs about a location. Ingest asks a worker of the pool that serves it."""

NEEDS_ID: Final = frozenset(
    {"session.create", "session.prompt", "session.fork", "session.shell", "session.skill"}
)
"""Repeatable verbs that make something. Only its id tells a repeated command from a second one.

Not repeatable are `session.agent` (each writes an event), `session.resume` and `session.compact` (each
may ask for another one after the first is done), and `permission.ask` (each asks).
"""

KEYED: Final = frozenset(
    {
        "session.cancel",
        "session.edit",
        "session.interrupt",
        "session.resume",
        "session.agent",
        "session.model",
        "session.move",
        "session.describe",
        "session.archive",
        "session.unarchive",
        "session.compact",
        "session.budget",
        "revert.stage",
        "revert.clear",
        "revert.commit",
        "permission.reply",
        "permission.approve",
        "question.reply",
        "question.reject",
    }
)
"""Verbs that take an idempotency key: the session remembers how they were answered.

The others that change something need none. An id names what they make, a hash names what they store,
or the second time changes nothing, as a purge.
"""
