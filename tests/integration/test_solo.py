"""All services in one process: the same sessions, the same guarantees, no message for a local request."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import pytest
import pytest_asyncio

from fairlead_cli.embedded.stack import run_stack
from fairlead_cli.errors import UsageError
from fairlead_schema import subjects
from fairlead_testing.session_driver import (
    count_runs,
    events_of,
    probe_prompt,
    say,
    wait_for_probe,
    wait_until_settled,
)
from fairlead_testing.stack import TIMEOUT_S, Stack, check_log, event_types, stack
from tests.tidy.metrics_table import TRACED, declared

pytestmark = [
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(240),
]

CONFIG = """
permissions = [
    {{ action = "*", resource = "*", effect = "allow" }},
    {{ action = "probe_once", resource = "*", effect = "ask" }},
]

[provider.acme]
protocol = "openai-chat"
base_url = "http://127.0.0.1:1"
api_key_env = "PLANTED_PROVIDER_KEY"

[provider.acme.model.one]
context = 1000
output = 100

[tools]
probes = true
probe_file = "{probe}"
"""
PLANTED = {
    "PLANTED_PROVIDER_KEY": "planted-provider-key",
    "PLANTED_CLOUD_KEY": "planted-cloud-key",
    "FAIRLEAD_DSN_ADMIN": "planted-dsn",
}
SLOW = "[[sim: chunks=30 delay_ms=40]] take your time"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def up() -> AsyncIterator[Stack]:
    with (
        TemporaryDirectory(prefix="fairlead-", ignore_cleanup_errors=True) as directory,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in PLANTED.items():
            patch.setenv(name, value)
        config = write_config(Path(directory))
        async with stack(config.parent / "state", solo=True, config=config, sim=True) as running:
            yield running


def write_config(place: Path) -> Path:
    place.chmod(0o755)
    config, probe = place / "fairlead.toml", place / "probe.log"
    probe.touch(mode=0o666)
    config.write_text(CONFIG.format(probe=probe))
    return config


def planted_in(pid: int) -> set[str]:
    """The planted secrets in the environment of a process, which only root may read."""
    try:
        held = Path(f"/proc/{pid}/environ").read_text()
    except PermissionError:
        return {"PLANTED_PROVIDER_KEY"}
    return {name for name, value in PLANTED.items() if value in held}


async def count_delivered(up: Stack, subject: str) -> int:
    """How many messages NATS has delivered to the subscriptions of a subject."""
    url = f"{up.up.monitor}/connz?subs=detail&limit=1000"
    async with httpx.AsyncClient(trust_env=False) as http:
        connections: list[dict[str, Any]] = (await http.get(url)).json()["connections"]
    return sum(
        found.get("msgs", 0)
        for connection in connections
        for found in connection.get("subscriptions_list_detail", ())
        if found["subject"] == subject
    )


async def operations(up: Stack, path: str) -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False) as http:
        return await http.get(f"{up.up.ops}{path}")


async def test_a_text_turn_asks_its_neighbours_without_nats(up: Stack) -> None:
    """The gateway asks ingest, and the runner asks tools: not one message of theirs reaches NATS."""
    assert [process.name for process in up.up.processes] == ["nats", "postgres", "sim", "solo"]
    session = await up.client.create()
    receipt = await up.client.prompt(session.id, "Hello there")
    log = await up.wait_until_rested(session.id)

    check_log(log)
    assert event_types(log).count("step.ended") == 1
    messages = await up.messages(session.id)
    assert "Hello there" in messages[1]["content"][0]["text"]
    again = await up.client.prompt(session.id, "Hello there", id=receipt.id)
    assert again.admitted_seq == receipt.admitted_seq
    doors = (
        subjects.api("*", "session.create"),
        subjects.api("*", "session.prompt"),
        subjects.observe("default"),
        subjects.tool_catalog("default"),
        subjects.tenant_usage("*"),
    )
    assert [await count_delivered(up, door) for door in doors] == [0, 0, 0, 0, 0]


async def test_clients_of_nats_are_answered_as_ever(up: Stack) -> None:
    session = await up.session()
    await say(up, session, "over NATS")

    check_log(await up.wait_until_rested(session))
    assert await count_delivered(up, subjects.api("*", "session.prompt")) >= 1


async def test_a_call_waits_for_a_person_and_runs_once(up: Stack) -> None:
    session = await up.session()
    await say(up, session, probe_prompt("asked"))
    log = await up.until(session, "permission.asked")
    (asked,) = events_of(log, "permission.asked")

    path = f"/api/session/{session}/permission/{asked.request.id}/reply"
    assert (await up.http.post(path, json={"reply": "once"})).status_code == 204
    log = await wait_until_settled(up, session)

    assert len(events_of(log, "tool.succeeded")) == 1
    assert count_runs(up, "asked") == 1


async def test_an_interrupt_stops_a_turn(up: Stack) -> None:
    session = await up.session()
    await say(up, session, "[[sim: chunks=200 delay_ms=100]] for long")
    await up.until(session, "step.started")

    assert (await up.http.post(f"/api/session/{session}/interrupt")).is_success
    log = await up.wait_until_rested(session)

    assert events_of(log, "step.failed")[0].error.message == "Provider turn interrupted"
    assert events_of(log, "execution.released")[0].reason == "interrupted"


async def test_a_kill_in_mid_turn_and_in_mid_call_loses_nothing(up: Stack) -> None:
    """SIGKILL takes ingest, runner, tools, gateway and projector at once; the next process goes on."""
    talking, calling = await up.session(), await up.session()
    await say(up, talking, SLOW)
    await say(up, calling, probe_prompt("killed", 1_000, tool="probe_idempotent"))
    await up.until(talking, "step.started")
    await wait_for_probe(up, "killed", "begun")

    await up.restart("solo", 0, signal.SIGKILL)
    await say(up, talking, "and then")
    log = await wait_until_settled(up, talking)
    called = await wait_until_settled(up, calling)

    assert event_types(log).count("prompt.promoted") == 2
    assert "execution.recovered" in event_types(log)
    assert len(events_of(called, "tool.succeeded")) == 1


async def test_a_sigterm_finishes_the_turn_first(up: Stack) -> None:
    """As a runner of its own does: the turn ends, the session is handed over, nothing is repaired."""
    session = await up.session()
    await say(up, session, SLOW)
    await up.until(session, "step.started")

    await up.restart("solo", 0, signal.SIGTERM)
    log = await wait_until_settled(up, session)

    assert event_types(log).count("step.ended") == 1
    assert "execution.recovered" not in event_types(log)


BUSY = {
    "fairlead_log_append_seconds_count",
    'fairlead_tokens_total{kind="output",provider="sim"}',
    'fairlead_first_output_seconds_count{provider="sim"}',
    'fairlead_turns_total{end="answered"}',
    'fairlead_drains_total{end="rested"}',
    "fairlead_projector_events_total",
    "fairlead_projector_feed_events_total",
}


async def counted(up: Stack) -> set[str]:
    """The samples that are not zero."""
    lines = (await operations(up, "/metrics")).text.splitlines()
    samples = [line.rpartition(" ") for line in lines if not line.startswith("#")]
    return {name for name, _, value in samples if float(value) > 0}


async def test_one_port_has_the_health_and_the_metrics_of_all_parts(up: Stack) -> None:
    session = await up.session()
    await say(up, session, "Say hello")
    await wait_until_settled(up, session)

    ready = (await operations(up, "/readyz")).json()
    assert ready == {"ready": True, "away": {}, "degraded": {}}
    lines = (await operations(up, "/metrics")).text.splitlines()
    families = [line.split()[2] for line in lines if line.startswith("# TYPE")]

    assert len(families) == len(set(families))
    # What the documents list is what a stack exposes, and what it does shows.
    others = {TRACED, "`fairlead audit`"}
    own = {each.name for each in declared() if each.service not in others}
    assert own <= set(families)
    async with asyncio.timeout(TIMEOUT_S):
        while BUSY - await counted(up):
            await asyncio.sleep(0.1)
    parts = {
        json.loads(line)["service"] for line in up.up.log_path("solo").read_text().splitlines()
    }
    assert {"ingest", "runner", "tools", "projector"} <= parts


async def test_a_command_sees_no_key_of_a_provider(up: Stack) -> None:
    """B3: the process has the keys of all parts, and its commands have none of them."""
    session = await up.session()
    await say(up, session, """[[sim: tool=bash args='{"command": "env"}' ; answer=done]]""")
    log = await wait_until_settled(up, session)

    (settled,) = events_of(log, "tool.succeeded")
    shown = str(settled.model_dump())
    assert "PATH=" in shown
    assert not any(value in shown for value in PLANTED.values())
    pid = up.up.pid("solo")
    assert pid is not None
    assert planted_in(pid) == {"PLANTED_PROVIDER_KEY"}


async def test_one_process_is_not_scaled(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="leave out --scale"):
        async with asyncio.timeout(TIMEOUT_S), run_stack(tmp_path, solo=True, scale={"runner": 2}):
            pass
