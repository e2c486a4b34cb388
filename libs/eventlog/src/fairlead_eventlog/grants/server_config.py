"""Renders grants as a configuration that nats-server includes: accounts, users and permissions."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from fairlead_eventlog.grants.callout import ACCOUNT, CALLOUT, REQUESTS, CalloutRules
from fairlead_eventlog.grants.crossings import (
    PLATFORM,
    READ_S_MAX,
    Crossing,
    Crossings,
    with_new_names,
)
from fairlead_eventlog.grants.permissions import Permissions
from fairlead_eventlog.grants.services import (
    READER,
    SERVICE_IDENTITIES,
    reader_crossings,
    service_grants,
    worker_grants,
)
from fairlead_eventlog.grants.tenants import (
    CLIENT_CONNECTIONS_MAX,
    TOOL_ANSWER_MIN_MAX,
    principal_grants,
    principal_key,
    tenant_account,
    tenant_crossings,
)
from fairlead_schema.identity.nats_address import CLIENT_PAYLOAD_BYTES_MAX, CLIENT_SUBSCRIPTIONS_MAX
from fairlead_schema.identity.principal import Principal
from fairlead_schema.ids import TenantId
from fairlead_schema.tools.pool_rules import ONE_POOL, PoolRules, worker_identity

GATEWAY: Final = "GATEWAY"
HEAD: Final = "# Written by Fairlead: `fairlead provision --nats-auth` replaces this file.\n"
SERVICE_ANSWERS: Final = '{ max: 1, expires: "2m" }'
TOOL_ANSWER_MAX: Final = f"{TOOL_ANSWER_MIN_MAX}m"
CLIENT_ANSWERS: Final = f'{{ max: 1, expires: "{TOOL_ANSWER_MAX}" }}'
"""Every request gets one answer."""
PublicKeys: TypeAlias = Mapping[str, tuple[str, ...]]
"""A name has two keys while one replaces the other."""


def render(
    public_keys: PublicKeys,
    principals: Iterable[Principal],
    callout: CalloutRules | None = None,
    pools: PoolRules = ONE_POOL,
) -> str:
    """The configuration. The public keys of identities and principals are given by name."""
    by_tenant: dict[TenantId, list[Principal]] = defaultdict(list)
    for tenant in () if callout is None else callout.tenants:
        by_tenant[tenant] = []
    for principal in principals:
        by_tenant[principal.tenant].append(principal)
    crossings = {GATEWAY: reader_crossings()}
    for tenant, members in sorted(by_tenant.items()):
        crossings[tenant_account(tenant)] = tenant_crossings(tenant, tuple(members))
    lines = [HEAD, "accounts {", *_platform(public_keys, crossings, pools)]
    lines += _gateway(public_keys, crossings[GATEWAY])
    for tenant, members in sorted(by_tenant.items()):
        account = tenant_account(tenant)
        lines += _tenant(account, crossings[account], members, public_keys)
    if callout is not None:
        lines += _callout_account(public_keys)
    lines += ["}", "system_account: SYS"]
    if callout is not None:
        lines += _callout(public_keys, callout)
    return "\n".join([*lines, ""])


def _callout_account(public_keys: PublicKeys) -> Iterator[str]:
    yield f"  {ACCOUNT} {{"
    yield "    users: ["
    granted = Permissions(subscribe=(REQUESTS,))
    yield from _user(public_keys[CALLOUT], granted, CALLOUT, SERVICE_ANSWERS)
    yield "    ]"
    yield "  }"


def _callout(public_keys: PublicKeys, callout: CalloutRules) -> Iterator[str]:
    """Who signs users. A static key that is not listed would be asked about too."""
    static = tuple(key for keys in public_keys.values() for key in keys)
    yield "authorization {"
    yield "  auth_callout {"
    yield f"    issuer: {callout.issuer}"
    yield f"    account: {ACCOUNT}"
    yield f"    auth_users: [{_list(static)}]"
    yield "  }"
    yield "}"


def _platform(
    public_keys: PublicKeys, crossings: Mapping[str, Crossings], pools: PoolRules
) -> Iterator[str]:
    yield "  SYS { }"
    yield f"  {PLATFORM} {{"
    yield "    jetstream: enabled"
    yield "    users: ["
    for identity in SERVICE_IDENTITIES:
        if identity != READER:
            granted = service_grants(identity, default_pool=pools.default)
            yield from _user(public_keys[identity], granted, identity, SERVICE_ANSWERS)
    for pool in pools.others:
        name = worker_identity(pool)
        granted = worker_grants(pool, pools.tenants_of(pool))
        yield from _user(public_keys[name], granted, name, SERVICE_ANSWERS)
    yield "    ]"
    yield "    exports: ["
    for account, crossing in crossings.items():
        yield from (_export_request(request, account) for request in crossing.requests)
        yield from (
            f"      {{ stream: {_quote(subject)}, accounts: [{_quote(account)}] }}"
            for subject in crossing.broadcasts
        )
    yield "    ]"
    yield "    imports: ["
    for account, crossing in crossings.items():
        yield from (_import("service", account, subject) for subject in crossing.served)
    yield "    ]"
    yield "  }"


def _gateway(public_keys: PublicKeys, crossing: Crossings) -> Iterator[str]:
    yield f"  {GATEWAY} {{"
    yield "    users: ["
    granted = with_new_names(service_grants(READER))
    yield from _user(public_keys[READER], granted, READER, SERVICE_ANSWERS)
    yield "    ]"
    yield from _mappings(crossing)
    yield "    exports: ["
    # Every gateway answers the same question.
    for subject in crossing.served:
        answers = f'response_type: stream, response_threshold: "{READ_S_MAX}s"'
        yield f"      {{ service: {_quote(subject)}, {answers}, accounts: [{PLATFORM}] }}"
    yield "    ]"
    yield from _imports(crossing)
    yield "  }"


def _tenant(
    account: str,
    crossing: Crossings,
    members: Iterable[Principal],
    public_keys: PublicKeys,
) -> Iterator[str]:
    yield f"  {_quote(account)} {{"
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
    yield from _mappings(crossing)
    yield "    exports: ["
    for subject in crossing.served:
        answer = f"response_threshold: {_quote(TOOL_ANSWER_MAX)}"
        yield f"      {{ service: {_quote(subject)}, {answer}, accounts: [{PLATFORM}] }}"
    yield "    ]"
    yield from _imports(crossing)
    yield "  }"


def _mappings(crossing: Crossings) -> Iterator[str]:
    yield "    mappings: {"
    for request in crossing.requests:
        if request.new_name is not None:
            yield f"      {_quote(request.subject)}: {_quote(request.new_name)}"
    yield "    }"


def _imports(crossing: Crossings) -> Iterator[str]:
    yield "    imports: ["
    for request in crossing.requests:
        yield _import("service", PLATFORM, request.subject, request.new_name)
    yield from (_import("stream", PLATFORM, subject) for subject in crossing.broadcasts)
    yield "    ]"


def _user(
    public_keys: tuple[str, ...], granted: Permissions, name: str, answers: str
) -> Iterator[str]:
    for public_key in public_keys:
        yield from _key(public_key, granted, name, answers)


def _key(public_key: str, granted: Permissions, name: str, answers: str) -> Iterator[str]:
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
    if crossing.answer_s_max is not None:
        answers += f', response_threshold: "{crossing.answer_s_max}s"'
    return (
        f"      {{ service: {_quote(crossing.subject)}, response_type: {answers},"
        f" accounts: [{_quote(account)}] }}"
    )


def _import(kind: str, account: str, subject: str, local_name: str | None = None) -> str:
    to = "" if local_name is None else f", to: {_quote(local_name)}"
    origin = f"{{ account: {_quote(account)}, subject: {_quote(subject)} }}"
    return f"      {{ {kind}: {origin}{to} }}"


def _list(subjects: tuple[str, ...]) -> str:
    return ", ".join(map(_quote, subjects))


def _quote(text: str) -> str:
    return json.dumps(text)
