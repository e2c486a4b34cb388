"""Starts worker processes for a rebuild, gives them their shards, and notices when one dies."""

import asyncio
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from fairlead_projector.errors import WorkerDied
from fairlead_projector.projection.workers.job import WorkerJob
from fairlead_projector.projection.workers.process import (
    CAN_COPY,
    WorkerProcess,
    copy_process,
    start_process,
)
from fairlead_schema.identity.nats_address import NatsAddress
from fairlead_schema.subjects import SHARDS

# A worker that has to import everything takes a second of a core. For a short log that is more than
# it saves. A copy takes some hundredths.
COMMITS_PER_PROCESS: Final = 2_000 if CAN_COPY else 20_000


@dataclass(frozen=True, slots=True)
class Staffing:
    """How many processes a rebuild may have, and where they find the log."""

    nats: NatsAddress
    processes_max: int
    commits_per_process: int = COMMITS_PER_PROCESS
    copies: bool = CAN_COPY
    """Whether the workers are copies of this process."""

    def count_workers(self, commits: int) -> int:
        """The processes beside this one for so many commits."""
        return min(self.processes_max - 1, SHARDS - 1, commits // self.commits_per_process)


class Crew:
    """Running workers. They end when this process ends, however it does."""

    def __init__(self, workers: Sequence[WorkerProcess]) -> None:
        self._workers = workers

    def begin(self, jobs: Sequence[WorkerJob]) -> None:
        """Give each worker its job."""
        for worker, job in zip(self._workers, jobs, strict=True):
            worker.give(job.encode())

    def check(self) -> None:
        """Raise WorkerDied if a worker has ended."""
        for worker in self._workers:
            if (returncode := worker.poll()) is not None:
                raise WorkerDied(worker.pid, _describe_end(returncode))


@asynccontextmanager
async def start_crew(count: int, *, copies: bool) -> AsyncIterator[Crew]:
    """Start workers, which wait for their jobs, and end them after the block."""
    workers: list[WorkerProcess] = []
    try:
        workers += (copy_process() if copies else start_process() for _number in range(count))
        yield Crew(workers)
    finally:
        await asyncio.gather(*(worker.end() for worker in workers))


def _describe_end(returncode: int) -> str:
    if returncode < 0:
        return f"was killed by signal {-returncode} ({signal.strsignal(-returncode)})"
    return f"ended with status {returncode}"
