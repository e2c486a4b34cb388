"""Measures what held wakes cost a nats-server: a heartbeat per wake, and one per runner (docs/adr/0031).

`python -m tests.model.heartbeat_cost [--replicas 3] [--wakes 1000] [--seconds 20]`
"""

import argparse
import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import nats
import orjson
from nats.aio.client import Client
from nats.aio.msg import Msg

from fairlead_cli.embedded.ports import free_port
from fairlead_testing.nats import Server
from fairlead_testing.nats_cluster import run_beside, run_cluster

BEAT_S: Final = 0.7
# The prototype: a wake of a runner that lives is extended this rarely.
LONG_DEADLINE_S: Final = 60.0
LONG_BEAT_S: Final = LONG_DEADLINE_S / 3
RUNNER_WAKES: Final = 250
WATCHERS: Final = 2
TOGETHER: Final = 100
POLL_S: Final = 1.0
LONG_POLL_S: Final = 20.0
TICKS: Final = os.sysconf("SC_CLK_TCK")


class Servers(NamedTuple):
    """Running servers: where clients connect, and whose time counts."""

    url: str
    pids: tuple[int, ...]
    replicas: int

    def cpu_s(self) -> float:
        """The processor time of all servers so far."""
        return sum(_cpu_s(pid) for pid in self.pids)


class Cost(NamedTuple):
    """The cost of one way to keep wakes."""

    messages_s: float
    cpu: float


@contextmanager
def run_servers(directory: Path, replicas: int) -> Iterator[Servers]:
    """One server, or a cluster of three."""
    if replicas == 1:
        server = Server(directory, free_port())
        server.start()
        try:
            assert server.process is not None
            yield Servers(server.url, (server.process.pid,), 1)
        finally:
            server.kill()
        return
    with run_cluster(directory) as cluster:
        run_beside(cluster.wait_until_ready())
        pids = tuple(node.process.pid for node in cluster.nodes if node.process is not None)
        yield Servers(",".join(cluster.address.servers), pids, replicas)


@asynccontextmanager
async def hold_wakes(servers: Servers, count: int, deadline_s: float) -> AsyncIterator[list[Msg]]:
    """Take so many wakes from a fresh work queue, as runners do."""
    client = await _connect(servers)
    try:
        await _create_queue(client, servers.replicas, deadline_s)
        await _leave_wakes(client, count)
        pull = await client.jetstream().pull_subscribe_bind(consumer="lane", stream="COST")
        held: list[Msg] = []
        while len(held) < count:
            held += await pull.fetch(min(250, count - len(held)), timeout=10)
        yield held
    finally:
        await client.jetstream().delete_stream("COST")
        await client.close()


async def measure(servers: Servers, seconds: float, work: Callable[[], Awaitable[int]]) -> Cost:
    """Repeat some work that sends messages; the cost of one second of it."""
    idle_s = await _idle_cpu_s(servers, seconds / 4)
    began, before, sent = time.monotonic(), servers.cpu_s(), 0
    while time.monotonic() - began < seconds:
        next_at = time.monotonic() + BEAT_S
        sent += await work()
        await asyncio.sleep(max(0.0, next_at - time.monotonic()))
    spent_s = time.monotonic() - began
    return Cost(sent / spent_s, (servers.cpu_s() - before) / spent_s - idle_s)


async def extend_each(servers: Servers, count: int, seconds: float) -> Cost:
    """Today: one extension per held wake and heartbeat."""
    async with hold_wakes(servers, count, 2.0) as held:

        async def beat() -> int:
            for msg in held:
                await msg.in_progress()
            return len(held)

        return await measure(servers, seconds, beat)


async def beat_per_runner(servers: Servers, count: int, seconds: float) -> Cost:
    """The prototype: one message per runner that names its wakes, and a rare extension of each."""
    heard: list[int] = []
    async with hold_wakes(servers, count, LONG_DEADLINE_S) as held:
        runners = [held[first : first + RUNNER_WAKES] for first in range(0, count, RUNNER_WAKES)]
        client = await _connect(servers)
        watchers = [await _connect(servers) for _ in range(WATCHERS)]
        for watcher in watchers:
            await watcher.subscribe("cost.beat.*", cb=_counter(heard))
        turn = 0

        async def beat() -> int:
            nonlocal turn
            turn += 1
            for number, wakes in enumerate(runners):
                await client.publish(f"cost.beat.{number}", encode_held(wakes))
            # The same share of the wakes is extended in each beat.
            rare = [
                msg
                for place, msg in enumerate(held)
                if place % round(LONG_BEAT_S / BEAT_S) == turn % 28
            ]
            for msg in rare:
                await msg.in_progress()
            return len(runners) + len(rare)

        try:
            return await measure(servers, seconds, beat)
        finally:
            assert heard, "the watchers heard beats"
            for connection in (client, *watchers):
                await connection.close()


async def poll(servers: Servers, pulls: int, seconds: float, expires_s: float) -> Cost:
    """Idle pulls of so many pairs of a runner and a lane, each repeated when it has expired."""
    client = await _connect(servers)
    await _create_queue(client, servers.replicas, 2.0)
    inbox, answers = client.new_inbox(), 0
    body = {"batch": 16, "expires": int(expires_s * 1e9)}
    if expires_s < LONG_POLL_S:
        body["idle_heartbeat"] = int(expires_s * 1e9 / 2.5)
    next_at = [time.monotonic() + expires_s * pull / pulls for pull in range(pulls)]

    async def count(_msg: Msg) -> None:
        nonlocal answers
        answers += 1

    async def ask() -> int:
        nonlocal answers
        asked, now = 0, time.monotonic()
        for pull, at in enumerate(next_at):
            if at <= now:
                request = orjson.dumps(body)
                await client.publish(
                    "$JS.API.CONSUMER.MSG.NEXT.COST.lane", request, reply=f"{inbox}.{pull}"
                )
                next_at[pull] = now + expires_s
                asked += 1
        answered, answers = answers, 0
        return asked + answered

    try:
        await client.subscribe(f"{inbox}.*", cb=count)
        return await measure(servers, seconds, ask)
    finally:
        await client.jetstream().delete_stream("COST")
        await client.close()


def encode_held(wakes: Sequence[Msg]) -> bytes:
    """The held wakes of a runner, so that a watcher can put each back: delivery, stream and place."""
    return orjson.dumps([[int(part) for part in msg.reply.split(".")[4:7]] for msg in wakes])


async def take_over(servers: Servers, count: int) -> tuple[float, float]:
    """Kill a process that holds wakes; the time until another client has the first and the last."""
    client = await _connect(servers)
    await _create_queue(client, servers.replicas, LONG_DEADLINE_S)
    await _leave_wakes(client, count)
    beats: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def hear(msg: Msg) -> None:
        beats.put_nowait((time.monotonic(), msg.data))

    await client.subscribe("cost.beat.dead", cb=hear)
    holder = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.model.heartbeat_cost", "--hold", str(count), servers.url
    )
    held: list[list[int]] = []
    while len(held) < count:
        held = orjson.loads((await beats.get())[1])
    pull = await client.jetstream().pull_subscribe_bind(consumer="lane", stream="COST")
    holder.send_signal(signal.SIGKILL)
    died = time.monotonic()
    taken, late_s = list[float](), BEAT_S * 1.5
    put_back = asyncio.create_task(_watch(client, beats, held, late_s))
    while len(taken) < count:
        batch = await pull.fetch(count - len(taken), timeout=30)
        taken += [time.monotonic() - died] * len(batch)
    await put_back
    await holder.wait()
    await client.jetstream().delete_stream("COST")
    await client.close()
    return taken[0], taken[-1]


async def _watch(
    client: Client,
    beats: "asyncio.Queue[tuple[float, bytes]]",
    held: list[list[int]],
    late_s: float,
) -> None:
    """Wait until beats stay away and two pings find nobody; then put the wakes back."""
    while True:
        try:
            async with asyncio.timeout(late_s):
                held = orjson.loads((await beats.get())[1])
        except TimeoutError:
            break
    for pause_s in (0.5, 0.0):
        try:
            await client.request("cost.ping.dead", b"", timeout=0.5)
        except nats.errors.NoRespondersError:
            await asyncio.sleep(pause_s)
    for deliveries, sequence, place in held:
        await client.publish(f"$JS.ACK.COST.lane.{deliveries}.{sequence}.{place}.0.0", b"-NAK")


async def hold(url: str, count: int) -> None:
    """Hold wakes and beat until somebody kills this process."""
    client = await nats.connect(url.split(","))
    pull = await client.jetstream().pull_subscribe_bind(consumer="lane", stream="COST")
    held: list[Msg] = []
    while len(held) < count:
        held += await pull.fetch(count - len(held), timeout=10)
    while True:
        await client.publish("cost.beat.dead", encode_held(held))
        await client.flush()
        await asyncio.sleep(BEAT_S)


async def _leave_wakes(client: Client, count: int) -> None:
    for first in range(0, count, TOGETHER):
        numbers = range(first, min(first + TOGETHER, count))
        publish = client.jetstream().publish
        await asyncio.gather(*(publish(f"cost.wake.{number}", b"") for number in numbers))


async def _create_queue(client: Client, replicas: int, deadline_s: float) -> None:
    stream = {
        "name": "COST",
        "subjects": ["cost.wake.*"],
        "retention": "workqueue",
        "max_msgs_per_subject": 1,
        "num_replicas": replicas,
        "storage": "file",
    }
    consumer = {
        "durable_name": "lane",
        "ack_policy": "explicit",
        "ack_wait": int(deadline_s * 1e9),
        "max_ack_pending": 100_000,
        "max_waiting": 4096,
    }
    await _api(client, "STREAM.CREATE.COST", stream)
    await _api(client, "CONSUMER.CREATE.COST.lane", {"stream_name": "COST", "config": consumer})


async def _api(client: Client, verb: str, body: dict[str, Any]) -> None:
    answer = orjson.loads((await client.request(f"$JS.API.{verb}", orjson.dumps(body), 20)).data)
    assert "error" not in answer, answer


async def _connect(servers: Servers) -> Client:
    return await nats.connect(servers.url.split(","))


async def _idle_cpu_s(servers: Servers, seconds: float) -> float:
    before = servers.cpu_s()
    await asyncio.sleep(seconds)
    return (servers.cpu_s() - before) / seconds


def _counter(heard: list[int]) -> Callable[[Msg], Awaitable[None]]:
    async def count(msg: Msg) -> None:
        heard.append(len(msg.data))

    return count


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


async def compare(servers: Servers, wakes: int, seconds: float) -> None:
    """Print both ways and the take-over time of the new one."""
    per_thousand = 1000 / wakes
    for name, way in (("per wake", extend_each), ("per runner", beat_per_runner)):
        cost = await way(servers, wakes, seconds)
        sys.stdout.write(
            f"R{servers.replicas} {name}: {cost.messages_s * per_thousand:,.0f} messages/s and "
            f"{cost.cpu * per_thousand * 100:.2f} % of a core per 1,000 held wakes\n"
        )
    for expires_s in (POLL_S, LONG_POLL_S):
        cost = await poll(servers, wakes, seconds, expires_s)
        sys.stdout.write(
            f"R{servers.replicas} pulls of {expires_s:g} s: {cost.messages_s * per_thousand:,.0f} "
            f"messages/s and {cost.cpu * per_thousand * 100:.2f} % of a core per 1,000 idle pulls\n"
        )
    for _ in range(3):
        first_s, last_s = await take_over(servers, RUNNER_WAKES)
        sys.stdout.write(
            f"R{servers.replicas} take-over of {RUNNER_WAKES} wakes: first after {first_s:.2f} s, "
            f"last after {last_s:.2f} s\n"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicas", type=int, default=1, choices=(1, 3))
    parser.add_argument("--wakes", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--hold", nargs=2, metavar=("COUNT", "URL"), help="used by the measurement")
    options = parser.parse_args()
    if options.hold:
        asyncio.run(hold(options.hold[1], int(options.hold[0])))
        return
    with (
        TemporaryDirectory(prefix="fairlead-cost-") as directory,
        run_servers(Path(directory), options.replicas) as servers,
    ):
        asyncio.run(compare(servers, options.wakes, options.seconds))


if __name__ == "__main__":
    main()
