"""Tool servers as real processes: listed, called, killed, noisy, and restarted."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from fairlead_cli.embedded.ports import free_port
from fairlead_schema.location import LocationRef
from fairlead_schema.tools.content import FileContent, TextContent
from fairlead_service.config.configuration import Config
from fairlead_session.calls.lifecycle import Succeeded
from fairlead_tools.registry.outcome import encode_output
from fairlead_tools.registry.registry import Registry, Scope
from fairlead_tools.registry.tool import CallContext, CallFailed, Tool
from fairlead_tools.servers.limits import ServerTimings
from fairlead_tools.servers.pool import ToolServers
from services.tools.tests.conftest import AT

pytestmark = pytest.mark.integration

HERE = Scope("default", "/w")
SUPPORT = Path(__file__).parents[4] / "tests" / "support"
CONTEXT = CallContext(AT, LocationRef(directory="/w"), "build", "msg_a", "call_1", "wkr_a")
WAIT_S = 60.0


@contextmanager
def run_server(file: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """A server at a URL, in a process that the test owns."""
    process = subprocess.Popen(
        [sys.executable, "-m", "fairlead_testing.tool_server", str(file), str(port)],
        env={**os.environ, "PYTHONPATH": str(SUPPORT)},
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait(10)


class ServerHarness:
    """A registry with tool servers, and a file in which they record their calls."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.registry = Registry()

    def command(self, **more: object) -> dict[str, Any]:
        return {
            "command": sys.executable,
            "args": ["-m", "fairlead_testing.tool_server", str(self.file)],
            "env": {"PYTHONPATH": str(SUPPORT)},
            **more,
        }

    @asynccontextmanager
    async def connect(
        self, mcp: dict[str, Any], *, first_lists_s: float = 5.0, **config: object
    ) -> AsyncIterator[None]:
        settings = Config.model_validate({"mcp": mcp, **config})
        # A slow start must not lead to the longest pause between attempts.
        timings = ServerTimings(first_lists_s=first_lists_s, reconnect_s_max=1.0)
        async with ToolServers(settings, self.registry, timings).connect():
            await self.wait_until(lambda: bool(self.names()))
            yield

    def names(self, scope: Scope = HERE) -> list[str]:
        return [tool.name for tool in self.registry.catalog(scope).tools]

    def tool(self, name: str, scope: Scope = HERE) -> Tool:
        registered_tool = self.registry.find(name, scope)
        assert registered_tool is not None, self.names(scope)
        return registered_tool

    async def call(self, name: str, scope: Scope = HERE, **fields: Any) -> Succeeded:  # noqa: ANN401
        tool = self.tool(name, scope)
        outcome = encode_output(
            tool, await tool.execute(tool.input.model_validate(fields), CONTEXT)
        )
        assert isinstance(outcome, Succeeded), outcome
        return outcome

    async def failure_of(self, name: str, **fields: Any) -> str:  # noqa: ANN401
        with pytest.raises(CallFailed) as error:
            await self.call(name, **fields)
        return str(error.value)

    def recorded_lines(self, word: str) -> list[list[str]]:
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        return [line.split() for line in lines if line.startswith(word)]

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(WAIT_S):
            while not condition():
                await asyncio.sleep(0.02)

    async def call_when_back(self, name: str, **fields: Any) -> Succeeded:  # noqa: ANN401
        """The result of a call, retried until the server is back."""
        async with asyncio.timeout(WAIT_S):
            while True:
                with suppress(CallFailed):
                    return await self.call(name, **fields)
                await asyncio.sleep(0.05)


@pytest.fixture
def harness(tmp_path: Path) -> ServerHarness:
    return ServerHarness(tmp_path / "calls")


async def test_a_server_that_is_a_process(
    harness: ServerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """J-40: tools are sorted, failures and media arrive, and only listed variables are passed."""
    monkeypatch.setenv("UNLISTED", "never")
    monkeypatch.setenv("TEST_SECRET", "s3cret")
    server = harness.command(env_from={"SECRET": "TEST_SECRET"}, trust_hints=True)
    async with harness.connect({"t": server}):
        assert harness.names() == sorted(harness.names())
        assert {harness.tool(f"t_{n}").retry for n in ("add", "environment", "slow")} == {
            "pure",
            "idempotent",
            "once",
        }
        assert (await harness.call("t_add", a=2, b=3)).structured == {"result": 5}
        assert await harness.failure_of("t_fails") == "Error executing tool fails: not today"
        (picture,) = (await harness.call("t_picture")).content
        assert picture == FileContent(uri="data:image/png;base64,iVBORw0KGgo=", mime="image/png")
        variables = (await harness.call("t_environment")).structured["result"]
        assert f"secret={'s3cret'[::-1]}" in variables
        assert not {"UNLISTED", "TEST_SECRET"} & set(variables)

        # Thousands of notifications and log lines do not disturb the call.
        assert (await harness.call("t_chatter", count=2000)).content == (TextContent(text="said"),)

        # A changed list adds a tool and keeps the revisions of the others.
        before = harness.tool("t_add").info.revision
        await harness.call("t_grow")
        await harness.wait_until(lambda: "t_grown" in harness.names())
        assert harness.tool("t_add").info.revision == before
    assert harness.names() == []


async def test_a_server_that_dies_in_mid_call(
    harness: ServerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    """J-40: the outcome is unknown, nothing is sent again, and the server is restarted."""
    async with harness.connect(
        {"t": harness.command(env={"PYTHONPATH": str(SUPPORT), "K": "s3cret"})}
    ):
        call = asyncio.create_task(harness.failure_of("t_slow", key="k"))
        await harness.wait_until(lambda: bool(harness.recorded_lines("slow k")))
        os.kill(int(harness.recorded_lines("slow k")[0][2]), signal.SIGKILL)

        assert "its outcome is unknown" in await call
        assert "is unavailable: add was not run" in await harness.failure_of("t_add", a=1, b=1)
        assert "t_add" in harness.names()
        assert (await harness.call_when_back("t_add", a=1, b=1)).structured == {"result": 2}
        # Only a message above the limit ends the connection.
        (large,) = (await harness.call("t_huge", megabytes=1)).content
        assert isinstance(large, TextContent)
        assert len(large.text) == 1024 * 1024
        assert "its outcome is unknown" in await harness.failure_of("t_huge", megabytes=9)
    assert len(harness.recorded_lines("slow k")) == 1
    assert "s3cret" not in caplog.text


async def test_servers_that_never_stop_talking(
    harness: ServerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    """J-40: their calls fail, other servers go on, and a protocol flood is cut off."""
    # Standard error has no limit, so the call's own timeout ends that call.
    mcp = {
        "loud": harness.command(timeout_s=600),
        "sour": harness.command(timeout_s=2),
        "calm": harness.command(),
    }
    async with harness.connect(mcp), asyncio.timeout(WAIT_S):
        await harness.wait_until(
            lambda: {"loud_add", "sour_add", "calm_add"} <= set(harness.names())
        )
        calls = asyncio.gather(
            harness.failure_of("loud_flood", kind="noise"),
            harness.failure_of("sour_flood", kind="complaints"),
        )
        await harness.wait_until(lambda: len(harness.recorded_lines("flood")) == 2)
        assert (await harness.call("calm_add", a=1, b=1)).structured == {"result": 2}

        for message in await calls:
            assert "its outcome is unknown" in message
        assert (await harness.call_when_back("loud_add", a=1, b=1)).structured == {"result": 2}
    assert len(harness.recorded_lines("flood")) == 2
    (reason,) = {str(getattr(record, "reason", "")) for record in caplog.records} - {""}
    assert "it sent more than 4194304 bytes that are no message for the worker" in reason


async def test_its_process_ends_with_ours(harness: ServerHarness, tmp_path: Path) -> None:
    """J-40: this holds also when the worker is killed."""
    script = tmp_path / "host.py"
    script.write_text(
        "import asyncio, sys\n"
        "from fairlead_tools.servers.stdio import ServerCommand, ServerExit, start_server\n"
        "async def main():\n"
        "    argv = ('sh', '-c', f'trap \"\" TERM HUP; echo $$ > {sys.argv[1]}; exec sleep 1000')\n"
        "    async with start_server(ServerCommand(argv, {}), ServerExit()):\n"
        "        await asyncio.sleep(1000)\n"
        "asyncio.run(main())\n"
    )
    host = subprocess.Popen([sys.executable, str(script), str(harness.file)])  # noqa: ASYNC220
    await harness.wait_until(
        lambda: harness.file.exists() and bool(harness.file.read_text().strip())
    )
    child = int(harness.file.read_text())

    host.kill()
    host.wait(10)

    await harness.wait_until(lambda: not _is_running(child))


def _is_running(pid: int) -> bool:
    with suppress(OSError):
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    return False


async def test_a_server_at_a_url(harness: ServerHarness) -> None:
    """J-40: the server is killed during a call, is away, and comes back."""
    port = free_port()
    mcp = {"u": {"url": f"http://127.0.0.1:{port}/mcp", "timeout_s": 20}}
    with run_server(harness.file, port) as process:
        async with harness.connect(mcp):
            assert (await harness.call("u_add", a=2, b=3)).structured == {"result": 5}
            assert "outcome is unknown" in await harness.failure_of("u_huge", megabytes=9)
            await harness.call_when_back("u_add", a=1, b=1)
            call = asyncio.create_task(harness.failure_of("u_slow", key="k"))
            await harness.wait_until(lambda: bool(harness.recorded_lines("slow k")))
            process.kill()
            process.wait(10)
            assert "its outcome is unknown" in await call
            assert "u_add" in harness.names()
            with run_server(harness.file, port):
                assert (await harness.call_when_back("u_add", a=4, b=3)).structured == {"result": 7}
    assert len(harness.recorded_lines("slow k")) == 1


async def test_tenants_have_their_own_credentials(
    harness: ServerHarness,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """J-15, J-40: credentials are never shared, and a server that cannot start delays nobody."""
    monkeypatch.setenv("ALL", "everybodys")
    (tmp_path / "key").write_text("acmes\n")
    mcp = {
        "t": harness.command(env_from={"SECRET": "ALL"}),
        "off": harness.command(enabled=False),
        "gone": {"command": "/no/such/program"},
        "mute": {"command": "sleep", "args": ["1000"], "start_timeout_s": 0.2},
        "keyless": harness.command(env_from={"SECRET": "NOT_SET_ANYWHERE"}),
    }
    own = {"acme": {"mcp": {"t": {"env_file": {"SECRET": str(tmp_path / "key")}}}}}
    acme = Scope("acme", "/w")
    async with harness.connect(mcp, first_lists_s=0.5, tenant=own):
        await harness.wait_until(lambda: bool(harness.names(acme)))
        assert harness.names() == harness.names(acme)
        secrets = [
            (await harness.call("t_environment", scope)).structured["result"][-1]
            for scope in (HERE, acme)
        ]
    assert secrets == [f"secret={word[::-1]}" for word in ("everybodys", "acmes")]
    reasons = {str(getattr(record, "reason", "")) for record in caplog.records}
    assert any("the variable NOT_SET_ANYWHERE is not set" in reason for reason in reasons)
