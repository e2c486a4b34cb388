"""Starts worker processes for a rebuild, gives them their shards, and notices when one dies."""

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final

from fairlead_projector.errors import WorkerDied
from fairlead_projector.projection.workers.job import WorkerJob
from fairlead_schema.identity.nats_address import NatsAddress
from fairlead_schema.subjects import SHARDS

# A worker takes more than a second of a core to start. For a short log that is more than it saves.
COMMITS_PER_PROCESS: Final = 20_000
END_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Staffing:
    """How many processes a rebuild may have, and where they find the log."""

    nats: NatsAddress
    processes_max: int
    commits_per_process: int = COMMITS_PER_PROCESS

    def count_workers(self, commits: int) -> int:
        """The processes beside this one for so many commits."""
        return min(self.processes_max - 1, SHARDS - 1, commits // self.commits_per_process)


class Crew:
    """Running workers. They end when this process ends, however it does."""

    def __init__(self, workers: Sequence[Process]) -> None:
        self._workers = workers

    @property
    def pids(self) -> list[int]:
        return [worker.pid for worker in self._workers]

    async def begin(self, jobs: Sequence[WorkerJob]) -> None:
        """Give each worker its job."""
        for worker, job in zip(self._workers, jobs, strict=True):
            assert worker.stdin is not None
            # A worker that is dead already is noticed by `check`.
            with suppress(BrokenPipeError, ConnectionResetError):
                worker.stdin.write(job.encode())
                await worker.stdin.drain()

    def check(self) -> None:
        """Raise WorkerDied if a worker has ended."""
        for worker in self._workers:
            if worker.returncode is not None:
                raise WorkerDied(worker.pid, _describe_end(worker.returncode))


@asynccontextmanager
async def start_crew(count: int) -> AsyncIterator[Crew]:
    """Start workers, which wait for their jobs, and end them after the block."""
    workers: list[Process] = []
    try:
        for _number in range(count):
            module = f"{__package__}.worker"
            worker = await asyncio.create_subprocess_exec(
                sys.executable, "-P", "-m", module, stdin=PIPE
            )
            workers.append(worker)
        yield Crew(workers)
    finally:
        await asyncio.gather(*map(_end, workers))


async def _end(worker: Process) -> None:
    assert worker.stdin is not None
    worker.stdin.close()
    try:
        async with asyncio.timeout(END_S):
            await worker.wait()
    except TimeoutError:
        with suppress(ProcessLookupError):
            worker.kill()
        await worker.wait()


def _describe_end(returncode: int) -> str:
    if returncode < 0:
        return f"was killed by signal {-returncode} ({signal.strsignal(-returncode)})"
    return f"ended with status {returncode}"
