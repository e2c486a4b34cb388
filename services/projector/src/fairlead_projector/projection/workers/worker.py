"""Runs a worker of a rebuild: `python -m fairlead_projector.projection.workers.worker`.

Its job comes through standard input. It ends when that is closed, so it never outlives its rebuild.
"""

import asyncio
import signal
import sys

from fairlead_eventlog.jetstream.connect import connect
from fairlead_projector.projection.workers.job import WorkerJob, decode_job
from fairlead_projector.projection.workers.replay import replay_shards


async def work(job: WorkerJob) -> None:
    """Replay the shards of a job until standard input ends."""
    loop, orders = asyncio.get_running_loop(), asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    async with (
        connect(job.nats, name="fairlead-rebuild") as eventlog,
        replay_shards(job.dsn, eventlog, job.shards, reader=job.reader, alone=False),
    ):
        await orders.read()


def run_worker() -> None:
    """Wait for a job, and do it."""
    # A terminal interrupts the whole group of processes. The rebuild ends its workers itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    line = sys.stdin.buffer.readline()
    if line:  # Otherwise the rebuild ended before it began.
        asyncio.run(work(decode_job(line)))


if __name__ == "__main__":
    run_worker()
