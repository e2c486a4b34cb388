"""`fairlead up` and `fairlead demo` as people run them: real processes, from start to stop."""

import asyncio
import json
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

import httpx
import pytest

from fairlead_cli.embedded import child_process
from fairlead_cli.embedded.stack import run_stack
from fairlead_cli.gateway import open_client
from fairlead_cli.service_names import SERVICES
from fairlead_client.local_stack import Gateway

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

START_S = 90.0
CONSENT = "permissions are consent, not confinement"


def fairlead(*argv: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run one command to its end."""
    return subprocess.run(
        [sys.executable, "-m", "fairlead_cli", *argv],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
    )


class Up:
    """A `fairlead up --json` that has printed its addresses."""

    def __init__(self, *argv: str | Path) -> None:
        command = [sys.executable, "-m", "fairlead_cli", "up", "--json", "--port", "0", *argv]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        readable, _, _ = select.select([self.process.stdout], [], [], START_S)
        line = self.process.stdout.readline() if readable else ""
        assert line, self.end(signal.SIGKILL)
        self.addresses: dict[str, Any] = json.loads(line)

    @property
    def pids(self) -> list[int]:
        return [pid for pids in self.addresses["services"].values() for pid in pids]

    def end(self, sig: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Send a signal; return the exit code and the output on standard error."""
        self.process.send_signal(sig)
        _, output = self.process.communicate(timeout=60)
        return self.process.returncode, output


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def up(state: Path) -> Iterator[Callable[..., Up]]:
    """Starts stacks on the state, and ends those that still run after the test."""
    stacks: list[Up] = []

    def start(*argv: str | Path) -> Up:
        stacks.append(Up("--state", state, "--sim", *argv))
        return stacks[-1]

    yield start
    for stack in stacks:
        if stack.process.poll() is None:
            stack.end()


def wait_until_gone(pids: list[int], *, within_s: float = 10.0) -> bool:
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if all(child_process.command_line(pid) is None for pid in pids):
            return True
        time.sleep(0.05)
    return False


def test_up_says_where_everything_is_and_stops_cleanly(up: Callable[..., Up], state: Path) -> None:
    stack = up("--scale", "runner=2")

    assert set(stack.addresses) == {
        *("http", "token", "nats", "nats_nodes", "nats_nkey", "nats_inbox", "postgres", "services")
    }
    assert stack.addresses["nats_nodes"] == [stack.addresses["nats"]]
    assert (state / "token").read_text().strip() == stack.addresses["token"]
    assert (state / "token").stat().st_mode & 0o777 == 0o600
    assert stack.addresses["token"] not in (state / "run.json").read_text()
    assert {name: len(pids) for name, pids in stack.addresses["services"].items()} == {
        **dict.fromkeys(SERVICES, 1),
        "sim": 1,
        "runner": 2,
    }
    sessions = fairlead("sessions", "--state", state)
    assert sessions.returncode == 0, sessions.stderr
    doctor = fairlead("doctor", "--state", state)
    assert doctor.returncode == 0, doctor.stdout
    second = fairlead("up", "--state", state, "--port", "0")
    assert second.returncode == 1
    assert f"pid {stack.process.pid}" in second.stderr

    code, _ = stack.end(signal.SIGINT)

    assert code == 0
    assert wait_until_gone(stack.pids, within_s=0.5)


def test_a_solo_stack_has_one_process_for_all_services(up: Callable[..., Up], state: Path) -> None:
    refused = fairlead("up", "--state", state, "--sim", "--solo", "--scale", "runner=2")
    stack = up("--solo")
    prompt = fairlead("prompt", "--state", state, "--json", "Say hello")
    doctor = fairlead("doctor", "--state", state, "--json")
    code, _ = stack.end()

    assert refused.returncode == 2
    assert "--solo runs one process: leave out --scale" in refused.stderr
    assert stack.addresses["services"].keys() == {"sim", "solo"}
    assert json.loads(prompt.stdout)["finish"] == "stop", prompt.stderr
    findings = {line["name"]: line for line in map(json.loads, doctor.stdout.splitlines())}
    assert doctor.returncode == 0, doctor.stdout
    assert "one process for all" in findings["services"]["detail"]
    assert findings["capacity"]["status"] == "ok", findings["capacity"]
    assert "commits a second" in findings["capacity"]["detail"]
    assert code == 0
    assert wait_until_gone(stack.pids, within_s=0.5)


@pytest.mark.slow
def test_a_stack_with_three_nats_nodes_answers_and_refuses_to_run_with_one(
    up: Callable[..., Up], state: Path
) -> None:
    """Three copies of every stream, routes with a password, and every file inside the state."""
    stack = up("--nats-nodes", "3")
    nodes = stack.addresses["nats_nodes"]
    prompt = fairlead("prompt", "--state", state, "--json", "Say hello")
    doctor = fairlead("doctor", "--state", state, "--json")
    provisioned = fairlead("provision", "--state", state, "--replicas", "3")
    code, _ = stack.end()
    refused = fairlead("up", "--state", state, "--port", "0", "--sim")

    assert len(set(nodes)) == 3
    assert stack.addresses["nats"] == nodes[0]
    assert json.loads(prompt.stdout)["finish"] == "stop", prompt.stderr
    findings = [json.loads(line) for line in doctor.stdout.splitlines()]
    assert doctor.returncode == 0, doctor.stdout
    assert [finding["status"] for finding in findings if finding["name"] == "sync"] == ["ok"] * 3
    copies = next(finding for finding in findings if finding["name"] == "copies")
    assert copies["detail"] == "3 copies of each stream, all complete"
    assert {line.rpartition(": ")[2] for line in provisioned.stdout.splitlines()} == {"unchanged"}
    for node in range(3):
        config = state / "nats" / f"node-{node}" / "nats.conf"
        assert "authorization { user: node, password:" in config.read_text()
        assert config.stat().st_mode & 0o777 == 0o600
        assert (state / "nats" / f"node-{node}" / "jetstream").is_dir()
    assert code == 0
    assert refused.returncode == 1
    assert "was made with --nats-nodes 3" in refused.stderr
    assert "start it with --nats-nodes 3, or choose another directory" in refused.stderr


def test_a_prompt_is_answered_and_kept_through_a_killed_stack(
    up: Callable[..., Up], state: Path
) -> None:
    first = up()
    prompt = fairlead("prompt", "--state", state, "--json", "Say hello")
    assert prompt.returncode == 0, prompt.stderr
    answer = json.loads(prompt.stdout)
    before = fairlead("tail", "--state", state, "--no-follow", "--json", answer["session"])

    first.end(signal.SIGKILL)
    assert wait_until_gone(first.pids)
    up()
    after = fairlead("tail", "--state", state, "--no-follow", "--json", answer["session"])

    assert answer["finish"] == "stop"
    assert answer["text"]
    assert before.stdout
    assert after.stdout == before.stdout


def test_an_open_stack_serves_this_machine_without_a_key_and_no_web_page(
    up: Callable[..., Up], state: Path
) -> None:
    """B1: without a key the rules for Host and Origin still hold."""
    stack = up("--open")

    sessions = fairlead("sessions", "--state", state)
    url = f"{stack.addresses['http']}/api/session"
    friendly = httpx.get(url, trust_env=False)
    foreign = httpx.get(url, headers={"origin": "https://evil.example"}, trust_env=False)
    rebound = httpx.get(url, headers={"host": "evil.example"}, trust_env=False)

    assert "token" not in stack.addresses
    assert sessions.returncode == 0, sessions.stderr
    assert (friendly.status_code, foreign.status_code, rebound.status_code) == (200, 403, 403)


def test_rebuilt_read_models_have_the_same_digest(up: Callable[..., Up], state: Path) -> None:
    up()
    prompt = fairlead("prompt", "--state", state, "--json", "Say hello")
    assert prompt.returncode == 0, prompt.stderr

    digests = [fairlead("rebuild", "--state", state) for _ in range(2)]

    assert [result.returncode for result in digests] == [0, 0], digests
    assert digests[0].stdout == digests[1].stdout


async def test_what_dies_is_started_again(state: Path) -> None:
    async with run_stack(state) as stack:
        before = {name: stack.pid(name) for name in ("nats", "postgres", "ingest")}
        for name in before:
            stack.kill(name, 0, signal.SIGKILL)
        # Nothing signals a death, so the test polls.
        while any(stack.pid(name) in {before[name], None} for name in before):
            await asyncio.sleep(0.05)
        await stack.wait_ready()

        async with open_client(Gateway(stack.http, stack.token)) as client:
            session = await client.create()
            receipt = await client.prompt(session.id, "Still there?")
        assert receipt.admitted_seq > 1
        assert stack.log_path("ingest").exists()


@pytest.mark.slow
def test_where_nothing_confines_commands_up_and_explain_say_so(
    up: Callable[..., Up], state: Path, tmp_path: Path
) -> None:
    """B3: in one line, so that nobody takes permissions for a wall."""
    config = tmp_path / "fairlead.toml"
    config.write_text('[tools]\nsandbox = "none"\n')
    addresses = up("--config", config).addresses
    header = {"authorization": f"Bearer {addresses['token']}"}
    created = httpx.post(f"{addresses['http']}/api/session", json={}, headers=header)
    session = created.json()["data"]["id"]

    explained = fairlead("explain", session, "--state", state)
    greeting = greet(tmp_path / "second", config)

    assert CONSENT in explained.stdout
    assert CONSENT in next(line for line in greeting if "Sandbox" in line)


def greet(state: Path, config: Path) -> list[str]:
    """What `fairlead up` tells a person, up to its last line."""
    options = ("--port", "0", "--sim", "--state", str(state), "--config", str(config))
    command = [sys.executable, "-m", "fairlead_cli", "up", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = list(takewhile(lambda line: "Ctrl-C" not in line, process.stdout))
        process.terminate()
    return lines


def test_a_taken_port_is_named(state: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = str(listener.getsockname()[1])

        result = fairlead("up", "--state", state, "--port", port)

    assert result.returncode == 1
    assert f"port {port}" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_broken_configuration_says_file_key_and_reason(state: Path, tmp_path: Path) -> None:
    config = tmp_path / "fairlead.toml"
    config.write_text("[gateway]\nport = 'nine'\n")

    result = fairlead("up", "--state", state, "--config", config)

    assert result.returncode == 1
    assert result.stderr.startswith(f"fairlead: {config}: gateway.port: ")
    assert result.stderr.count("\n") == 1


def test_the_demo_shows_everything_and_leaves_nothing(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    before = set(Path("/tmp").glob("fairlead-demo-*"))  # noqa: S108 - the place to look at

    start = time.monotonic()
    result = fairlead("demo", cwd=tmp_path)

    assert result.returncode == 0, result.stdout + result.stderr
    assert time.monotonic() - start < 60
    assert "prompt.admitted" in result.stdout
    assert "step.ended" in result.stdout
    assert "\x1b" not in result.stdout
    assert set(Path("/tmp").glob("fairlead-demo-*")) <= before  # noqa: S108
