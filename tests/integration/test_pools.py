"""Two pools through a whole stack: each call runs in its pool, and sessions move between pools."""

import asyncio
import json
import os
import shlex
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from fairlead_cli.embedded.nats_auth import key_directory
from fairlead_testing.session_driver import events_of, say, wait_until_settled
from fairlead_testing.stack import TIMEOUT_S, Stack, check_log, event_types, stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(180),
]

CONFIG = """
[[agent.build.permissions]]
action = "*"
resource = "*"
effect = "allow"

[[pool]]
name = "gpu"
directories = [{gpu}]

[[pool]]
name = "spare"
directories = [{gpu}, {main}]
tenants = ["nobody"]

[tools]
probes = true
probe_file = {probes}

[location]
roots = [{place}]
"""


class Ports:
    """A stack with a pool for one directory and the default pool for another."""

    def __init__(self, up: Stack, place: Path) -> None:
        self.up = up
        self.main, self.gpu, self.probes = place / "main", place / "gpu", place / "probes"

    async def session(self, place: Path) -> str:
        return await self.up.session(location={"directory": str(place)})

    async def probe(self, session: str, key: str, **arguments: object) -> None:
        """Let the model call a probe."""
        args = shlex.quote(json.dumps({"key": key, **arguments}))
        await say(self.up, session, f"[[sim: tool=probe_once args={args} ; answer=done]] go")

    def runs(self, key: str) -> list[int]:
        """The processes that began to run a probe, in order."""
        lines = self.probes.read_text().splitlines() if self.probes.exists() else []
        found = [line.split() for line in lines]
        return [
            int(pid) for _tool, name, _worker, pid, act in found if (name, act) == (key, "begun")
        ]

    async def move(self, session: str, **body: object) -> dict[str, Any]:
        url = f"/api/session/{session}/move"
        answer = await self.up.http.post(url, json=body, timeout=TIMEOUT_S)
        found: dict[str, Any] = answer.json() if answer.content else {}
        return {"status": answer.status_code, **found}

    async def until_run(self, key: str) -> None:
        async with asyncio.timeout(TIMEOUT_S):
            while not self.runs(key):
                await asyncio.sleep(0.02)


@asynccontextmanager
async def open_ports(place: Path, **options: Any) -> AsyncIterator[Ports]:  # noqa: ANN401
    for parent in (place, *place.parents[:2]):
        parent.chmod(0o755)
    names = {"gpu": place / "gpu", "main": place / "main", "probes": place / "probes"}
    names["gpu"].mkdir()
    names["main"].mkdir()
    (names["gpu"] / "here.txt").write_text("gpu\n")
    config = place / "fairlead.toml"
    values = {name: json.dumps(str(path)) for name, path in (names | {"place": place}).items()}
    config.write_text(CONFIG.format(**values))
    async with stack(place / "state", sim=True, config=config, **options) as running:
        yield Ports(running, place)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ports(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Ports]:
    async with open_ports(tmp_path_factory.mktemp("ports")) as found:
        yield found


async def test_calls_run_in_the_pool_of_their_location_and_a_session_moves(ports: Ports) -> None:
    """C6: a worker serves its own locations, and nothing of another pool."""
    default, gpu = ports.up.up.pid("tools", 0), ports.up.up.pid("tools-gpu", 0)
    here, there = await ports.session(ports.main), await ports.session(ports.gpu)
    for session, key in ((here, "here"), (there, "there")):
        await ports.probe(session, key)
    for session in (here, there):
        log = await wait_until_settled(ports.up, session)
        assert events_of(log, "tool.succeeded"), [recorded.event for recorded in log]
    assert (ports.runs("here"), ports.runs("there")) == ([default], [gpu])
    assert (await ports.up.client.get(there)).pool == "gpu"
    query = {"location[directory]": str(ports.gpu)}
    listed = (await ports.up.http.get("/api/fs/list", params=query)).json()
    assert [entry["path"] for entry in listed["data"]] == ["here.txt"]

    refused = await ports.move(there, pool="spare")
    assert refused["status"] == 400
    assert "permit gpu, default" in refused["message"]
    assert (await ports.move(there, pool="default"))["status"] == 204
    await ports.probe(there, "moved")
    log = await wait_until_settled(ports.up, there)
    assert ports.runs("moved") == [default]
    assert (await ports.up.client.get(there)).pool is None
    types = event_types(log)
    assert types.count("context.initialised") == 2, "the other disk needs a baseline of its own"
    check_log(log)


@pytest.mark.slow
async def test_a_killed_worker_of_one_pool_does_not_disturb_the_other(ports: Ports) -> None:
    """C6: a call of the default pool goes on while the worker of the other pool dies and comes back."""
    default = ports.up.up.pid("tools", 0)
    here, there = await ports.session(ports.main), await ports.session(ports.gpu)
    await ports.probe(here, "calm", delay_ms=3000)
    await ports.probe(there, "killed", delay_ms=3000)
    await ports.until_run("calm")
    await ports.until_run("killed")

    await ports.up.restart("tools-gpu", 0, signal.SIGKILL)

    for session in (here, there):
        check_log(await wait_until_settled(ports.up, session))
    assert ports.runs("calm") == [default]
    assert len(ports.runs("killed")) == 1, "a call of the class `once` is not run again"


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["runner", "tools-gpu", "tools", "ingest"])
async def test_a_process_killed_in_a_move_between_pools_loses_nothing(
    ports: Ports, victim: str
) -> None:
    """C6: the move interrupts the call in its old pool; the next call runs in the new one, once."""
    session = await ports.session(ports.gpu)
    key = f"before-{victim}"
    await ports.probe(session, key, delay_ms=20_000)
    await ports.until_run(key)

    moving = asyncio.create_task(ports.move(session, pool="default"))
    ports.up.up.kill(victim, 0, signal.SIGKILL)
    while (await moving)["status"] != 204:
        moving = asyncio.create_task(ports.move(session, pool="default"))

    await ports.up.up.wait_ready()
    await ports.up.wait_until_rested(session)
    await ports.probe(session, f"after-{victim}")
    log = await wait_until_settled(ports.up, session)
    check_log(log)
    assert (len(ports.runs(key)), len(ports.runs(f"after-{victim}"))) == (1, 1)
    assert ports.runs(f"after-{victim}") == [ports.up.up.pid("tools", 0)]
    assert event_types(log).count("moved") == 1


@pytest.mark.slow
async def test_a_pool_without_workers_waits_with_a_reason_and_goes_on(tmp_path: Path) -> None:
    """C6: nothing is lost, `explain` says what to start, and the other pool works meanwhile."""
    async with open_ports(tmp_path, scale={"tools-gpu": 0}) as ports:
        there, here = await ports.session(ports.gpu), await ports.session(ports.main)
        await ports.probe(there, "waits")
        await ports.probe(here, "works")
        await wait_until_settled(ports.up, here)
        async with asyncio.timeout(TIMEOUT_S):
            while "no worker of the pool gpu answers" not in await explain(ports, there):
                await asyncio.sleep(0.2)
        assert not ports.runs("waits")

        async with worker(ports, "gpu"):
            log = await wait_until_settled(ports.up, there)

        assert len(ports.runs("waits")) == 1
        check_log(log)
        assert events_of(log, "step.ended")[-1].finish == "stop"


async def test_a_drain_that_cannot_wait_interrupts_and_the_work_goes_on_elsewhere(
    ports: Ports,
) -> None:
    """C6: the machines of a pool must leave now; a call that runs ends there, and its session goes on."""
    gpu = ports.up.up.pid("tools-gpu", 0)
    resting, busy = await ports.session(ports.gpu), await ports.session(ports.gpu)
    await ports.probe(busy, "hurried", delay_ms=60_000)
    await ports.until_run("hurried")

    code, lines = await run_command(ports, "drain", "gpu", "--to", "default", "--now")

    assert code == 0
    assert {resting, busy} <= {line["session"] for line in lines if line["pool"] == "default"}
    log = await wait_until_settled(ports.up, busy)
    check_log(log)
    assert ports.runs("hurried") == [gpu]
    types = event_types(log)
    assert types.count("interrupt.requested") == types.count("resume.requested") == 1
    assert events_of(log, "step.ended")[-1].finish == "stop", "the model went on after the move"
    assert event_types(await ports.up.events(resting))[-1] == "moved", "nobody asked it to work"
    for session in (resting, busy):
        assert (await ports.up.client.get(session)).pool is None


@pytest.mark.slow
async def test_a_drain_moves_sessions_at_rest_and_lets_calls_finish_where_they_are(
    ports: Ports,
) -> None:
    """C6: an operator empties a pool before its machines leave; nothing is interrupted."""
    gpu = ports.up.up.pid("tools-gpu", 0)
    resting, busy = await ports.session(ports.gpu), await ports.session(ports.gpu)
    await ports.probe(busy, "drained", delay_ms=4000)
    await ports.until_run("drained")
    listed = {line["pool"]: line for line in (await run_command(ports, "list"))[1]}
    workers = {name: line["workers"] for name, line in listed.items()}
    assert workers == {"gpu": 1, "spare": 1, "default": 1}
    assert (listed["default"]["note"], listed["gpu"]["sessions"] >= 1) == ("default", True)
    assert await run_command(ports, "drain", "gpu", "--wait", "0") == (1, [])

    code, lines = await run_command(ports, "drain", "gpu", "--to", "default", "--wait", "60")

    assert code == 0
    assert {resting, busy} <= {line["session"] for line in lines if line["pool"] == "default"}
    log = await wait_until_settled(ports.up, busy)
    assert ports.runs("drained") == [gpu]
    assert "interrupt.requested" not in event_types(log)
    check_log(log)
    for session in (resting, busy):
        assert (await ports.up.client.get(session)).pool is None


async def run_command(ports: Ports, *words: str) -> tuple[int, list[dict[str, Any]]]:
    """A command of an operator: its exit code, and its lines about sessions and pools that are not left."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "fairlead_cli", "pool", *words),
        *("--json", "--state", str(ports.up.up.state.root)),
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    lines = [json.loads(line) for line in out.decode().splitlines()]
    return process.returncode or 0, [line for line in lines if "left" not in line]


async def explain(ports: Ports, session: str) -> str:
    answer = await ports.up.ask("session.explain", {"sessionID": session})
    reason: str = answer["data"]["reason"]
    return reason


@asynccontextmanager
async def worker(ports: Ports, pool: str) -> AsyncIterator[None]:
    """One more worker of a pool, as an operator would start it."""
    up = ports.up.up
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "fairlead_tools",
        env={
            **os.environ,
            "FAIRLEAD_CONFIG": str(up.config),
            "FAIRLEAD_TOOLS_POOL": pool,
            "FAIRLEAD_TOOLS_SPOOL_DIR": str(up.state.tools),
            "FAIRLEAD_NATS_URL": up.nats,
            "FAIRLEAD_NATS_NKEY_FILE": str(key_directory(up.state).seed_file(f"tools-{pool}")),
            "FAIRLEAD_HEALTH_PORT": "0",
        },
    )
    try:
        yield
    finally:
        process.terminate()
        await process.wait()
