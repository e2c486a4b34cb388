"""Provisioning: repeatable, and it refuses whatever would lose data."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairlead_cli.embedded.ports import free_port
from fairlead_eventlog.errors import LogUnavailable, UnsafeChange
from fairlead_eventlog.jetstream.connect import open_link
from fairlead_eventlog.provision import missing_streams, provision, stream_config, unsafe_change
from fairlead_eventlog.streams import EVENTS, STREAMS, TOOLS, WAKES, StreamSpec, consumers
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
async def test_a_server_that_is_away_is_said_to_be(own_server: Server) -> None:
    own_server.kill()

    with pytest.raises(LogUnavailable, match="cannot be reached"):
        async with asyncio.timeout(30):
            await provision(own_server.address)


@pytest.mark.integration
async def test_a_queue_of_hints_that_is_persisted_otherwise_is_made_anew_when_it_is_empty(
    own_server: Server,
) -> None:
    """An earlier release had it on disk first: the server changes that for no stream."""
    earlier = stream_config(TOOLS, 1)
    del earlier["persist_mode"]
    async with open_link(own_server.address, name="test") as link:
        await link.api("STREAM.CREATE.TOOLS", earlier)
        await link.store("fairlead.tool.default.default.ses_1", b"{}")
        with pytest.raises(UnsafeChange, match="it holds 1 messages"):
            await provision(own_server.address)
        await link.api("STREAM.PURGE.TOOLS")
        lines: list[str] = []
        await provision(own_server.address, progress=lines.append)
        config = (await link.api("STREAM.INFO.TOOLS"))["config"]

    assert "stream TOOLS: created again" in lines
    assert "consumer TOOLS/tools-default: applied" in lines
    assert config["persist_mode"] == "async"


@pytest.mark.integration
async def test_a_feed_that_is_persisted_otherwise_is_made_anew_only_if_it_never_held_anything(
    own_server: Server,
) -> None:
    """Its readers remember sequences: emptied is not the same as unused."""
    earlier = stream_config(EVENTS, 1)
    del earlier["persist_mode"]
    async with open_link(own_server.address, name="test") as link:
        await link.api("STREAM.CREATE.EVENTS", earlier)
        lines: list[str] = []
        await provision(own_server.address, progress=lines.append)
        assert "stream EVENTS: created again" in lines
        await link.api("STREAM.DELETE.EVENTS")
        await link.api("STREAM.CREATE.EVENTS", earlier)
        await link.store("fairlead.event.default.ses_1.session.created", b"{}")
        await link.api("STREAM.PURGE.EVENTS")
        with pytest.raises(UnsafeChange, match="its persist mode would change"):
            await provision(own_server.address)


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
