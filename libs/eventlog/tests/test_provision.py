"""Provisioning: repeatable, and it refuses whatever would lose data."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from fairlead_cli.embedded.ports import free_port
from fairlead_eventlog.errors import LogUnavailable, UnsafeChange
from fairlead_eventlog.jetstream.link import NatsLink, ServerRefusal
from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_eventlog.provision import missing_streams, provision, stream_config, unsafe_change
from fairlead_eventlog.streams import EVENTS, STREAMS, TOOLS, WAKES, StreamSpec, consumers
from fairlead_schema.identity.nats_address import NatsAddress
from fairlead_testing.nats import Server


def check_change(spec: StreamSpec, **changes: Any) -> str | None:  # noqa: ANN401
    wanted = stream_config(spec, 1)
    return unsafe_change({**wanted, **changes}, wanted)


def test_an_equal_declaration_is_safe() -> None:
    assert all(check_change(spec) is None for spec in STREAMS)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"storage": "memory"}, "storage"),
        ({"retention": "interest"}, "retention"),
        ({"subjects": ["fairlead.event.*.*.>", "elsewhere"]}, "elsewhere"),
        ({"num_replicas": 3}, "replicas"),
    ],
)
def test_a_change_that_loses_data_is_named(change: dict[str, Any], reason: str) -> None:
    refusal = check_change(EVENTS, **change)

    assert refusal is not None
    assert reason in refusal


def test_a_limit_may_grow_but_never_shrink() -> None:
    wanted = stream_config(EVENTS, 1) | {"max_age": 100}

    assert unsafe_change(stream_config(EVENTS, 1), wanted) is not None
    assert unsafe_change(stream_config(EVENTS, 1) | {"max_age": 50}, wanted) is None


def test_only_what_is_made_good_may_be_acknowledged_before_the_disk_has_it() -> None:
    lazy = [spec.name for spec in STREAMS if spec.lazy]

    assert lazy == [WAKES.name, TOOLS.name, EVENTS.name]


def test_a_replicated_stream_is_never_asked_to_be_lazy() -> None:
    """The server refuses the two together, and with them everything that is provisioned after."""
    assert [spec.name for spec in STREAMS if "persist_mode" in stream_config(spec, 3)] == []
    assert "persist_mode" in stream_config(TOOLS, 1)


def test_no_two_streams_share_a_subject() -> None:
    every = [subject for spec in STREAMS for subject in spec.subjects]

    assert len(every) == len(set(every))


@pytest.mark.integration
async def test_provisioning_twice_changes_nothing(own_server: Server) -> None:
    lines: list[str] = []
    await provision(own_server.address)

    await provision(own_server.address, progress=lines.append)

    assert len(lines) == len(STREAMS) + len(consumers()) + 2
    assert {line.rpartition(": ")[2] for line in lines} == {"unchanged"}
    assert await missing_streams(own_server.address) == ()


def test_each_pool_has_a_consumer_of_its_own_requests() -> None:
    specs = [spec for spec in consumers(pools=("default", "gpu")) if spec.stream == "TOOLS"]

    assert [(spec.name, spec.filter_subject, spec.ack_wait_s) for spec in specs] == [
        ("tools-default", "fairlead.tool.default.>", 10.0),
        ("tools-gpu", "fairlead.tool.gpu.>", 10.0),
    ]


@pytest.mark.integration
async def test_the_pools_of_a_work_queue_stand_side_by_side(own_server: Server) -> None:
    pools = ("default", "gpu")
    await provision(own_server.address, pools=pools)

    async with open_link(own_server.address, name="test") as link:
        for pool in pools:
            consumer = await link.api(f"CONSUMER.INFO.TOOLS.tools-{pool}")
            assert consumer["config"]["filter_subject"] == f"fairlead.tool.{pool}.>"


@pytest.mark.integration
async def test_provisioning_refuses_a_stream_that_would_shrink(own_server: Server) -> None:
    foreign = stream_config(EVENTS, 1) | {"subjects": [*EVENTS.subjects, "elsewhere.>"]}
    async with open_link(own_server.address, name="test") as link:
        await link.api("STREAM.CREATE.EVENTS", foreign)

    with pytest.raises(UnsafeChange, match="elsewhere"):
        await provision(own_server.address)


@pytest.mark.integration
@pytest.mark.usefixtures("impatient")
async def test_a_server_that_is_away_is_said_to_be(own_server: Server) -> None:
    own_server.kill()

    with pytest.raises(LogUnavailable, match=r"cannot be reached.*correct nats\.url"):
        async with asyncio.timeout(30):
            await provision(own_server.address)


@pytest.mark.integration
async def test_a_queue_of_hints_that_is_persisted_otherwise_is_made_anew(
    own_server: Server,
) -> None:
    """Its hints are lost, and made again from the log."""
    earlier = stream_config(TOOLS, 1)
    del earlier["persist_mode"]
    async with open_link(own_server.address, name="test") as link:
        await link.api("STREAM.CREATE.TOOLS", earlier)
        await link.store("fairlead.tool.default.default.ses_1", b"{}")
        lines: list[str] = []
        await provision(own_server.address, progress=lines.append)
        config = (await link.api("STREAM.INFO.TOOLS"))["config"]

    assert "stream TOOLS: created again" in lines
    assert "consumer TOOLS/tools-default: applied" in lines
    assert config["persist_mode"] == "async"


@pytest.mark.integration
@pytest.mark.parametrize("stops_after", [*range(12), 99])
async def test_a_feed_that_is_persisted_otherwise_is_moved_with_all_it_holds(
    own_server: Server, stops_after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers remember sequences. A move that was interrupted anywhere is finished by the next run."""
    earlier = stream_config(EVENTS, 1)
    del earlier["persist_mode"]
    async with open_link(own_server.address, name="test") as link:
        await link.api("STREAM.CREATE.EVENTS", earlier)
        for number in range(4):
            await link.store(f"fairlead.event.default.ses_{number}.session.created", b"{}")
        await link.api("STREAM.MSG.DELETE.EVENTS", {"seq": 2})
        config = {"durable_name": "feed-a", "name": "feed-a", "ack_policy": "explicit"}
        body = {"stream_name": "EVENTS", "config": config}
        await link.api("CONSUMER.CREATE.EVENTS.feed-a", body)
        reader = await link.client.jetstream().pull_subscribe_bind("feed-a", stream="EVENTS")
        (first,) = await reader.fetch(1)
        await first.ack_sync()

        with monkeypatch.context() as patch:
            interrupt_after(patch, stops_after)
            with suppress(LogUnavailable):
                await provision(own_server.address)
        await provision(own_server.address)

        info = await link.api("STREAM.INFO.EVENTS")
        consumer = await link.api("CONSUMER.INFO.EVENTS.feed-a")
        next_ = await link.store("fairlead.event.default.ses_5.session.created", b"{}")
        lines: list[str] = []
        await provision(own_server.address, progress=lines.append)
        with pytest.raises(ServerRefusal):
            await link.api("STREAM.INFO.EVENTS-MOVED")

    state = info["state"]
    assert (state["first_seq"], state["last_seq"], state["messages"]) == (1, 4, 3)
    assert (next_, consumer["num_pending"]) == (5, 2)
    assert info["config"]["persist_mode"] == "async"
    assert "stream EVENTS: unchanged" in lines


def interrupt_after(patch: pytest.MonkeyPatch, calls: int) -> None:
    """Let the move fail before one of its changes, as if the process had died there."""
    done, api = [0], NatsLink.api

    async def counted(self: NatsLink, verb: str, body: object = None) -> dict[str, Any]:
        if "EVENTS" in verb and not verb.startswith("STREAM.INFO"):
            done[0] += 1
            if done[0] > calls:
                raise LogUnavailable("interrupted")
        return await api(self, verb, body)

    patch.setattr(NatsLink, "api", counted)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[list[Server]]:
    """Three servers that keep copies of each other's streams."""
    routes = [f"127.0.0.1:{free_port()}" for _ in range(3)]
    urls = ", ".join(f'"nats://{route}"' for route in routes)
    servers = []
    for number, route in enumerate(routes):
        directory = tmp_path / str(number)
        directory.mkdir()
        more = f'server_name: n{number}\ncluster {{ name: c, listen: "{route}", routes: [{urls}] }}'
        servers.append(Server(directory, free_port(), more=more))
    try:
        for server in servers:
            server.start()
        yield servers
    finally:
        for server in servers:
            if server.process is not None:
                server.kill()


@pytest.mark.integration
async def test_streams_are_replicated_where_there_are_servers_for_it(cluster: list[Server]) -> None:
    async with asyncio.timeout(90):
        while True:
            try:
                await provision(cluster[0].address, replicas=3)
            except LogUnavailable:
                await asyncio.sleep(0.2)  # No leader yet.
            else:
                break
    lines: list[str] = []
    await provision(cluster[1].address, replicas=3, progress=lines.append)

    assert {line.rpartition(": ")[2] for line in lines} == {"unchanged"}


@pytest.mark.integration
async def test_one_copy_becomes_three_with_data_in_every_stream(cluster: list[Server]) -> None:
    """A cluster that began with one copy: nothing has to be chosen before the first prompt."""
    address = cluster[0].address
    await provision_when_led(address, replicas=1)
    async with open_link(address, name="test") as link:
        stored = {spec.name: subject_of(spec) for spec in STREAMS}
        for subject in stored.values():
            await link.store(subject, b"{}")
        before = {name: await last_seq(link, name) for name in stored}

        await provision_when_led(address, replicas=3)

        after = {name: await last_seq(link, name) for name in stored}
        copies = {name: await count_copies(link, name) for name in stored}
    hints = {WAKES.name, TOOLS.name}
    assert {name for name in stored if after[name] != before[name]} <= hints
    assert set(copies.values()) == {3}


async def provision_when_led(address: NatsAddress, *, replicas: int) -> None:
    async with asyncio.timeout(120):
        while True:
            try:
                await provision(address, replicas=replicas)
            except LogUnavailable:
                await asyncio.sleep(0.2)  # No leader yet.
            else:
                return


def subject_of(spec: StreamSpec) -> str:
    """A subject that the stream takes."""
    return spec.subjects[0].replace("*", "x").replace(">", "x")


async def last_seq(link: NatsLink, stream: str) -> int:
    return int((await link.api(f"STREAM.INFO.{stream}"))["state"]["last_seq"])


async def count_copies(link: NatsLink, stream: str) -> int:
    return int((await link.api(f"STREAM.INFO.{stream}"))["config"]["num_replicas"])
