"""Renders grants as a configuration that nats-server includes: accounts, users and permissions."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from fairlead_eventlog.grants.permissions import Permissions
from fairlead_eventlog.grants.services import SERVICE_IDENTITIES, service_grants
from fairlead_eventlog.grants.tenants import (
    Crossing,
    TenantCrossings,
    principal_grants,
    principal_key,
    tenant_account,
    tenant_crossings,
)
from fairlead_schema.identity.principal import Principal
from fairlead_schema.ids import TenantId

PLATFORM: Final = "FAIRLEAD"
HEAD: Final = "# Written by Fairlead: `fairlead provision --nats-auth` replaces this file.\n"
SERVICE_ANSWERS: Final = '{ max: 1, expires: "2m" }'
CLIENT_ANSWERS: Final = '{ max: 1, expires: "61m" }'
"""Every request gets one answer. The tool of a tenant may take an hour for it."""
CLIENT_CONNECTIONS_MAX: Final = 256
CLIENT_SUBSCRIPTIONS_MAX: Final = 1_000
CLIENT_PAYLOAD_BYTES_MAX: Final = 1024 * 1024
"""What a tenant may take of the server: connections of its account, then of each connection."""


def render(public_keys: Mapping[str, str], principals: Iterable[Principal]) -> str:
    """The configuration. The public key of each identity and of each principal is given by name."""
    by_tenant: dict[TenantId, list[Principal]] = defaultdict(list)
    for principal in principals:
        by_tenant[principal.tenant].append(principal)
    crossings = {
        tenant: tenant_crossings(tenant, tuple(members))
        for tenant, members in sorted(by_tenant.items())
    }
    lines = [HEAD, "accounts {", *_platform(public_keys, crossings)]
    for tenant, crossing in crossings.items():
        lines += _tenant(tenant, crossing, by_tenant[tenant], public_keys)
    return "\n".join([*lines, "}", "system_account: SYS", ""])


def _platform(
    public_keys: Mapping[str, str], crossings: Mapping[TenantId, TenantCrossings]
) -> Iterator[str]:
    yield "  SYS { }"
    yield f"  {PLATFORM} {{"
    yield "    jetstream: enabled"
    yield "    users: ["
    for identity in SERVICE_IDENTITIES:
        yield from _user(public_keys[identity], service_grants(identity), identity, SERVICE_ANSWERS)
    yield "    ]"
    yield "    exports: ["
    for tenant, crossing in crossings.items():
        account = tenant_account(tenant)
        yield from (_export_request(request, account) for request in crossing.requests)
        yield from (
            f"      {{ stream: {_quote(subject)}, accounts: [{_quote(account)}] }}"
            for subject in crossing.broadcasts
        )
    yield "    ]"
    yield "    imports: ["
    for tenant, crossing in crossings.items():
        for subject in crossing.served:
            yield _import("service", tenant_account(tenant), subject)
    yield "    ]"
    yield "  }"


def _tenant(
    tenant: TenantId,
    crossing: TenantCrossings,
    members: Iterable[Principal],
    public_keys: Mapping[str, str],
) -> Iterator[str]:
    yield f"  {_quote(tenant_account(tenant))} {{"
    yield (
        f"    limits: {{ max_connections: {CLIENT_CONNECTIONS_MAX},"
        f" max_subscriptions: {CLIENT_SUBSCRIPTIONS_MAX},"
        f" max_payload: {CLIENT_PAYLOAD_BYTES_MAX} }}"
    )
    yield "    users: ["
    for principal in members:
        key = public_keys[principal_key(principal)]
        yield from _user(key, principal_grants(principal), principal.name, CLIENT_ANSWERS)
    yield "    ]"
    yield "    exports: ["
    for subject in crossing.served:
        yield f"      {{ service: {_quote(subject)}, accounts: [{PLATFORM}] }}"
    yield "    ]"
    yield "    imports: ["
    yield from (_import("service", PLATFORM, request.subject) for request in crossing.requests)
    yield from (_import("stream", PLATFORM, subject) for subject in crossing.broadcasts)
    yield "    ]"
    yield "  }"


def _user(public_key: str, granted: Permissions, name: str, answers: str) -> Iterator[str]:
    yield f"      # {name}"
    yield "      {"
    yield f"        nkey: {public_key}"
    yield "        permissions: {"
    yield f"          publish: {{ allow: [{_list(granted.publish)}] }}"
    yield f"          subscribe: {{ allow: [{_list(granted.subscribe)}] }}"
    yield f"          allow_responses: {answers}"
    yield "        }"
    yield "      }"


def _export_request(crossing: Crossing, account: str) -> str:
    answers = "stream" if crossing.many_answers else "singleton"
    return (
        f"      {{ service: {_quote(crossing.subject)}, response_type: {answers},"
        f" accounts: [{_quote(account)}] }}"
    )


def _import(kind: str, account: str, subject: str) -> str:
    return f"      {{ {kind}: {{ account: {_quote(account)}, subject: {_quote(subject)} }} }}"


def _list(subjects: tuple[str, ...]) -> str:
    return ", ".join(map(_quote, subjects))


def _quote(text: str) -> str:
    return json.dumps(text)
