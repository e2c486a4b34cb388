"""The embedded servers one by one, under their supervisor, for the length of a block."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fairlead_cli.embedded import nats
from fairlead_cli.embedded.ports import free_ports
from fairlead_cli.embedded.postgres import server as postgres
from fairlead_cli.embedded.state_directory import StateDirectory
from fairlead_cli.embedded.supervisor import SupervisedProcess, stop_all, wait_all_ready


@asynccontextmanager
async def run_processes(*processes: SupervisedProcess) -> AsyncIterator[None]:
    try:
        for process in processes:
            await process.start()
        await wait_all_ready(processes, print)
        yield
    finally:
        await stop_all(processes)


def nats_on(state: StateDirectory) -> tuple[SupervisedProcess, nats.NatsServer]:
    port, monitor = free_ports(2)
    server = nats.NatsServer(state, port, monitor)
    return SupervisedProcess(
        "nats", 0, lambda: nats.prepare(server), lambda: nats.why_not_ready(port)
    ), server


async def postgres_on(state: StateDirectory) -> tuple[SupervisedProcess, postgres.PostgresServer]:
    server = await postgres.locate_server(state, print)
    return postgres_process(server), server


def postgres_process(server: postgres.PostgresServer) -> SupervisedProcess:
    return SupervisedProcess(
        "postgres", 0, lambda: postgres.prepare(server), lambda: postgres.why_not_ready(server)
    )


async def kill_and_wait(process: SupervisedProcess) -> None:
    before = process.pid
    process.kill(signal.SIGKILL)
    async with asyncio.timeout(10):
        while process.pid in {before, None}:
            await asyncio.sleep(0.02)
    await process.wait_ready()
