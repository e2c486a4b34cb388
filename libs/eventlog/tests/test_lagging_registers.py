"""A register on a replica that lags: whoever wrote reads what was written (A2)."""

from collections.abc import AsyncIterator

import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.jetstream.connect import open_ports
from fairlead_eventlog.jetstream.registers.log_status import JetStreamLogStatus
from fairlead_service import ids
from fairlead_testing.nats import Server
from fairlead_testing.scripted_link import ScriptedLink, open_scripted_link

pytestmark = pytest.mark.integration


@pytest.fixture
async def link(server: Server) -> AsyncIterator[ScriptedLink]:
    async with open_scripted_link(server.address) as link:
        yield link


def ports(link: ScriptedLink) -> EventLog:
    return open_ports(link, JetStreamLogStatus(link), append_patience_s=20.0)


async def test_a_writer_of_records_reads_its_own_change(link: ScriptedLink) -> None:
    webhooks, tenant, key = ports(link).webhooks, ids.session_id(), ids.webhook_id()
    first = await webhooks.replace(tenant, key, b"one", revision=0)
    await webhooks.replace(tenant, key, b"two", revision=first)

    link.lag(first, reads=2)

    assert await webhooks.get_all(tenant) == {key: b"two"}


async def test_a_writer_of_registrations_reads_its_own_change(link: ScriptedLink) -> None:
    registrations, tenant = ports(link).tool_registrations, ids.session_id()
    await registrations.put(tenant, "svc.one.-", b"1")
    link.lag(0, reads=2)

    assert await registrations.get_all(tenant) == {"svc.one.-": b"1"}

    await registrations.remove(tenant, "svc.one.-")
    assert await registrations.get_all(tenant) == {}
