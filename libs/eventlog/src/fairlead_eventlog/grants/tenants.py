"""The grants of tenants' own clients, and what crosses from their account to the platform's.

Every tenant has an account of its own (docs/adr/0024). In one account with the platform a client could
name any subject as the reply of a request, and the server would write its answer there: into the log.
"""

from typing import Final

from fairlead_eventlog.grants import permissions as may
from fairlead_eventlog.grants.crossings import Crossing, Crossings, with_new_names
from fairlead_eventlog.grants.permissions import Permissions
from fairlead_eventlog.streams import EVENTS, JOBS, RECEIPTS
from fairlead_schema import subjects
from fairlead_schema.identity.nats_address import identity_inbox
from fairlead_schema.identity.principal import Principal
from fairlead_schema.identity.scopes import Scope
from fairlead_schema.identity.subject_token import principal_token
from fairlead_schema.identity.verbs import VERBS
from fairlead_schema.ids import TenantId
from fairlead_schema.subjects import ROOT

CLIENT_CONNECTIONS_MAX: Final = 256
"""What a tenant may take of the server; `nats_address` says what each connection may take."""
TOOL_ANSWER_MIN_MAX: Final = 61
"""The tool of a tenant may take an hour for its answer. By itself the server waits two minutes."""


_SERVING_SCOPES: Final[tuple[Scope, ...]] = (
    "tool:register",
    "source:register",
    "transform:register",
)


def principal_key(principal: Principal) -> str:
    """The name of a principal's key. Two tenants may have principals of one name."""
    return f"{principal.tenant}.{principal.name}"


def principal_inbox(principal: Principal) -> str:
    """The inbox prefix of a tenant's own client."""
    return identity_inbox(principal_token(principal.name).replace(":", "-"))


def principal_grants(principal: Principal) -> Permissions:
    """What a principal may do inside the account of its tenant."""
    granted = may.subscribe(f"{principal_inbox(principal)}.>")
    granted += may.publish(
        *(
            subjects.as_principal(principal.tenant, principal.name, verb)
            for verb, rule in VERBS.items()
            if rule.scope is not None and principal.may(rule.scope)
        )
    )
    if principal.may("session:write"):
        granted += may.publish(_prompts(principal.tenant))
    if principal.may("session:read"):
        granted += may.subscribe(*_broadcasts(principal.tenant))
        granted += may.publish(_receipts(principal.tenant))
        granted += _own_feed(principal)
    if principal.may("tool:register"):
        granted += _own_jobs(principal)
    if any(map(principal.may, _SERVING_SCOPES)):
        granted += may.subscribe(_tool_subjects(principal.tenant))
    return with_new_names(granted)


def tenant_crossings(tenant: TenantId, principals: tuple[Principal, ...]) -> Crossings:
    """What crosses for a tenant. Each crossing names the tenant, so that none serves another."""
    consumers: list[Crossing] = []
    for principal in principals:
        for granted in (_own_feed(principal), _own_jobs(principal)):
            look, pull, ack = granted.publish
            consumers += [Crossing(look), Crossing(pull, many_answers=True), Crossing(ack)]
    return Crossings(
        requests=(
            Crossing(f"{ROOT}.as.{tenant}.>"),
            Crossing(_prompts(tenant)),
            Crossing(_receipts(tenant)),
            *consumers,
        ),
        broadcasts=_broadcasts(tenant),
        served=(_tool_subjects(tenant),),
    )


def _prompts(tenant: TenantId) -> str:
    return f"{ROOT}.prompt.{tenant}.*"


def _receipts(tenant: TenantId) -> str:
    """Reads one receipt. The subject of the request names the receipt, so it can name no other."""
    return f"{may.API}.DIRECT.GET.{RECEIPTS.name}.{ROOT}.receipt.{tenant}.>"


def _broadcasts(tenant: TenantId) -> tuple[str, ...]:
    return (
        f"{ROOT}.event.{tenant}.>",
        f"{ROOT}.receipt.{tenant}.>",
        f"{ROOT}.delta.{tenant}.*",
    )


def _tool_subjects(tenant: TenantId) -> str:
    return f"{subjects.application_tool_prefix(tenant)}>"


def _own_feed(principal: Principal) -> Permissions:
    return _own(EVENTS.name, subjects.feed_consumer(principal.tenant, principal.name))


def _own_jobs(principal: Principal) -> Permissions:
    return _own(JOBS.name, subjects.job_consumer(principal.tenant, principal.name))


def _own(stream: str, consumer: str) -> Permissions:
    """Pull and acknowledge. Many libraries look at a consumer before they pull from it."""
    return may.inspect_consumer(stream, consumer) + may.take(stream, consumer)


ACCOUNT_PREFIX: Final = "TENANT-"


def tenant_account(tenant: TenantId) -> str:
    """The name of a tenant's account."""
    return f"{ACCOUNT_PREFIX}{tenant}"
