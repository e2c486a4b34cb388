"""Dependencies that are away at the start: a process says so, waits, and works when they come."""

import asyncio
import os
import socket
import sys
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from fairlead_cli.embedded.ports import free_port
from fairlead_eventlog.provision import provision
from fairlead_testing.nats import Server

pytestmark = pytest.mark.integration

PLANTED = "planted-password"


async def ready(client: httpx.AsyncClient) -> tuple[int, str]:
    answer = await client.get("/readyz")
    return answer.status_code, answer.text


@pytest.mark.parametrize("service", ["ingest", "runner", "tools"])
async def test_a_service_waits_for_nats_and_then_works(service: str, tmp_path: Path) -> None:
    server, port = Server(tmp_path, free_port()), free_port()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        f"fairlead_{service}",
        env={
            **os.environ,
            "FAIRLEAD_NATS_URL": server.url,
            "FAIRLEAD_HEALTH_PORT": str(port),
        },
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with (
            asyncio.timeout(90),
            httpx.AsyncClient(
                base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=60
            ) as client,
        ):
            while not _open(port):
                await asyncio.sleep(0.05)
            assert (await client.get("/healthz")).status_code == 200
            status, why = await ready(client)
            assert status == 503
            assert "work" in why

            server.start()
            await provision(server.address)
            while (await ready(client))[0] != 200:
                await asyncio.sleep(0.1)

            server.kill()
            while (await ready(client))[0] != 503:
                await asyncio.sleep(0.1)
            metrics = await client.get("/metrics")
            assert "process_cpu_seconds_total" in metrics.text
    finally:
        process.terminate()
        assert await asyncio.wait_for(process.wait(), 60) is not None
        if server.process is not None:
            server.kill()


@pytest.mark.parametrize(
    "service",
    [
        "ingest",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("runner", "tools", "gateway")),
    ],
)
async def test_an_address_with_a_password_is_shown_nowhere(service: str, tmp_path: Path) -> None:
    """B8: neither `/readyz` nor metrics nor logs nor documents hold the password of an address."""
    server, port, log = Server(tmp_path, free_port()), free_port(), tmp_path / "service.log"
    server.more = 'authorization { user: somebody, password: "another" }'
    server.start()
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            f"fairlead_{service}",
            env={
                **os.environ,
                "FAIRLEAD_NATS_URL": f"nats://somebody:{PLANTED}@127.0.0.1:{server.port}",
                "FAIRLEAD_HEALTH_PORT": str(port),
                "FAIRLEAD_GATEWAY_PORT": str(free_port()),
                "FAIRLEAD_AUTH_MODE": "open",
                "FAIRLEAD_LOG_LEVEL": "DEBUG",
            },
            stdout=output,
            stderr=output,
        )
    try:
        async with (
            asyncio.timeout(90),
            httpx.AsyncClient(
                base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=60
            ) as client,
        ):
            while not _open(port):
                await asyncio.sleep(0.05)
            while "CredentialsRefused" not in log.read_text():
                await asyncio.sleep(0.1)
            pages = [
                (await client.get(path)).text for path in ("/readyz", "/metrics", "/asyncapi.json")
            ]
    finally:
        server.kill()
        with suppress(ProcessLookupError):
            process.terminate()
        await asyncio.wait_for(process.wait(), 60)

    assert PLANTED not in "".join(pages)
    assert PLANTED not in log.read_text()


async def test_a_broken_configuration_stops_a_service_with_one_clear_line(tmp_path: Path) -> None:
    config = tmp_path / "fairlead.toml"
    config.write_text('default_agent = "build"\n[runner]\nsessions_max = "many"\n')
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "fairlead_runner",
        env={**os.environ, "FAIRLEAD_CONFIG": str(config)},
        stderr=asyncio.subprocess.PIPE,
    )
    _, output = await asyncio.wait_for(process.communicate(), 60)

    assert process.returncode == 1
    assert str(config) in output.decode()
    assert "runner.sessions_max" in output.decode()
    assert "Traceback" not in output.decode()


def _open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
