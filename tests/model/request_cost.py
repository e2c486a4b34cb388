"""Measures what requests cost through nats-py's own methods and through the thin path (docs/adr/0039).

`python -m tests.model.request_cost [--count 4000] [--rounds 5]`

Both ways take turns on the same connection. The figures are µs of processor time per operation, the
best of all rounds: of this process, and of the process that answers the requests.
"""

import argparse
import asyncio
import multiprocessing
import os
import sys
import time
from collections.abc import Awaitable, Callable
from multiprocessing.synchronize import Event
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple, TypeAlias

import orjson
import uvloop
from nats.aio.msg import Msg

from fairlead_cli.embedded.ports import free_port
from fairlead_eventlog.jetstream.link import EXPECTED_LAST, NatsLink
from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_eventlog.jetstream.thin.frames import InboundMessage
from fairlead_schema.identity.nats_address import NatsAddress
from fairlead_testing.nats import Server

BODY: Final = b"x" * 700
DELTAS: Final = 20
TIMEOUT_S: Final = 20.0
STREAM: Final = "COST"

Operation: TypeAlias = Callable[[int], Awaitable[None]]
"""One operation of one of several tasks, which have numbers."""


class Row(NamedTuple):
    """One kind of operation, both ways."""

    name: str
    together: int
    ordinary: Operation
    thin: Operation
    weight: int = 1
    """How many messages one operation has."""


def answer_requests(url: str, ready: Event) -> None:
    """Answer until killed: on one subject as nats-py does, on the other at once."""

    async def run() -> None:
        async with open_link(NatsAddress(url), name="answers") as link:
            client = link.client

            async def respond(msg: Msg) -> None:
                await msg.respond(BODY)

            def respond_at_once(message: InboundMessage) -> bool:
                return client.try_send(message.reply, BODY)

            await client.subscribe("ordinary", cb=respond)
            await client.subscribe_directly("thin", respond_at_once)
            await client.flush()
            await client.flush()
            ready.set()
            await asyncio.sleep(3600)

    uvloop.run(run())


def rows(link: NatsLink) -> list[Row]:
    """What is measured."""
    client, heads = link.client, dict.fromkeys(range(64), 0)

    async def ask(_task: int) -> None:
        await client.request("ordinary", BODY, timeout=TIMEOUT_S)

    async def ask_thinly(_task: int) -> None:
        await link.request("thin", BODY, timeout_s=TIMEOUT_S)

    async def append(task: int) -> None:
        headers = {EXPECTED_LAST: str(heads[task])}
        answer = await client.request(f"cost.{task}", BODY, TIMEOUT_S, headers=headers)
        heads[task] = int(orjson.loads(answer.data)["seq"])

    async def append_thinly(task: int) -> None:
        headers = {EXPECTED_LAST: str(heads[task])}
        heads[task] = await link.store(f"cost.{task}", BODY, headers=headers, timeout_s=TIMEOUT_S)

    async def publish(_task: int) -> None:
        for _ in range(DELTAS):
            await client.publish("nobody", BODY)
        await asyncio.sleep(0)

    async def publish_thinly(_task: int) -> None:
        for _ in range(DELTAS):
            await link.send("nobody", BODY)
        await asyncio.sleep(0)

    return [
        Row("request", 1, ask, ask_thinly),
        Row("request", 8, ask, ask_thinly),
        Row("append with CAS, fsync", 1, append, append_thinly),
        Row("append with CAS, fsync", 8, append, append_thinly),
        Row(f"publish, {DELTAS} in one turn of the loop", 1, publish, publish_thinly, DELTAS),
    ]


async def measure(operation: Operation, count: int, together: int, pid: int) -> tuple[float, float]:
    """µs of processor time per operation, here and in the answering process."""

    async def repeat(task: int) -> None:
        for _ in range(count // together):
            await operation(task)

    here, there = time.process_time(), _cpu_s(pid)
    await asyncio.gather(*(repeat(task) for task in range(together)))
    done = count // together * together
    return (time.process_time() - here) / done * 1e6, (_cpu_s(pid) - there) / done * 1e6


async def receive_rounds(link: NatsLink, count: int, rounds: int) -> tuple[float, float]:
    """µs of processor time per message that comes to a callback, both ways."""
    received, wanted = 0, asyncio.Event()

    def receive(_message: InboundMessage) -> None:
        nonlocal received
        received += 1
        if received == count:
            wanted.set()

    async def receive_later(_msg: Msg) -> None:
        receive(InboundMessage(""))

    await link.client.subscribe("heard.ordinary", cb=receive_later)
    await link.listen("heard.thin", receive)
    best = {"heard.ordinary": float("inf"), "heard.thin": float("inf")}
    for subject in list(best) * rounds:
        received = 0
        wanted.clear()
        began = time.process_time()
        for _ in range(count):
            await link.send(subject, BODY)
        await wanted.wait()
        best[subject] = min(best[subject], (time.process_time() - began) / count * 1e6)
    return best["heard.ordinary"], best["heard.thin"]


async def compare(url: str, pid: int, count: int, rounds: int) -> None:
    """Print a table."""
    async with open_link(NatsAddress(url), name="cost") as link:
        await link.api(f"STREAM.CREATE.{STREAM}", {"name": STREAM, "subjects": ["cost.*"]})
        _print("| µs a message | at a time | here: nats-py | thin | answers: nats-py | thin |")
        _print("|---|--:|--:|--:|--:|--:|")
        for row in rows(link):
            each = max(row.together, count // row.weight // (4 if "append" in row.name else 1))
            best = [(float("inf"), float("inf"))] * 2
            for _ in range(rounds):
                for way, operation in enumerate((row.ordinary, row.thin)):
                    cost = await measure(operation, each, row.together, pid)
                    best[way] = (min(best[way][0], cost[0]), min(best[way][1], cost[1]))
            answers = [f"{way[1]:.0f}" if row.name == "request" else "" for way in best]
            here = [f"{way[0] / row.weight:.1f}" for way in best]
            _print(
                f"| {row.name} | {row.together} | {here[0]} | {here[1]} | {' | '.join(answers)} |"
            )
        heard = await receive_rounds(link, count, rounds)
        _print(f"| publish, and receive in a callback | | {heard[0]:.1f} | {heard[1]:.1f} | | |")


def _cpu_s(pid: int) -> float:
    """The processor time of a process, from the scheduler's counters."""
    tasks = Path(f"/proc/{pid}/task")
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks.iterdir()) / 1e9


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    with TemporaryDirectory() as directory:
        server = Server(Path(directory), free_port())
        server.start()
        context = multiprocessing.get_context("spawn")
        ready = context.Event()
        answers = context.Process(target=answer_requests, args=(server.url, ready), daemon=True)
        answers.start()
        try:
            ready.wait(30)
            pid = answers.pid or os.getpid()
            uvloop.run(compare(server.url, pid, arguments.count, arguments.rounds))
        finally:
            answers.kill()
            answers.join()
            server.kill()


if __name__ == "__main__":
    main()
