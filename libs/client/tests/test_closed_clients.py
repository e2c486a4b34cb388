"""A client that is closed while others use it, and streams that nobody reads to their end."""

import asyncio
import gc
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from fairlead_client import AsyncFairlead, ClientClosed, Fairlead, NatsLogin
from fairlead_testing.nats import Server
from libs.client.tests.conftest import event, stream
from libs.client.tests.test_nats_client import ScriptedIngest, ingest, seed, server

__all__ = ["ingest", "seed", "server"]
pytestmark = [pytest.mark.integration, pytest.mark.timeout(60)]

JOIN_S = 10


@pytest.fixture
async def silent_gateway() -> AsyncIterator[str]:
    """A gateway that shows one event, and then says nothing."""
    over, serving = asyncio.Event(), set[asyncio.Task[None] | None]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.add(asyncio.current_task())
        await reader.readuntil(b"\r\n\r\n")
        writer.write(stream(event(1)))
        await over.wait()
        writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    over.set()
    listener.close()
    await asyncio.gather(*(task for task in serving if task is not None))


@pytest.fixture(params=["http", "nats"])
async def synchronous(
    request: pytest.FixtureRequest,
    silent_gateway: str,
    server: Server,
    seed: Path,
    ingest: ScriptedIngest,
) -> Callable[[], Fairlead]:
    """Makes a synchronous client over one of the two ways. Its session has one event."""
    if request.param == "http":
        return lambda: Fairlead(silent_gateway)
    await ingest.write(1)
    return lambda: Fairlead.over_nats(NatsLogin(server.url, nkey_file=seed))


@pytest.fixture(params=["http", "nats"])
async def fairlead(
    request: pytest.FixtureRequest,
    silent_gateway: str,
    server: Server,
    seed: Path,
    ingest: ScriptedIngest,
) -> AsyncFairlead:
    """The same for asyncio."""
    if request.param == "http":
        return AsyncFairlead(silent_gateway)
    await ingest.write(1)
    return AsyncFairlead.over_nats(NatsLogin(server.url, nkey_file=seed))


async def test_a_thread_that_follows_is_woken_when_another_one_closes_the_client(
    synchronous: Callable[[], Fairlead], caplog: pytest.LogCaptureFixture
) -> None:
    def close_meanwhile() -> list[object]:
        fairlead, taken, has_begun = synchronous(), list[object](), threading.Event()

        def follow() -> None:
            try:
                for received in fairlead.follow("ses_a", after=0):
                    taken.append(received.seq)
                    has_begun.set()
            except ClientClosed as error:
                taken.append(type(error))

        thread = threading.Thread(target=follow, daemon=True)
        thread.start()
        assert has_begun.wait(JOIN_S)
        fairlead.close()
        thread.join(JOIN_S)
        assert not thread.is_alive()
        return taken

    for _ in range(5):
        assert await asyncio.to_thread(close_meanwhile) == [1, ClientClosed]
    gc.collect()
    assert "destroyed" not in caplog.text, "a task of the closed client is left"


async def test_a_task_that_follows_is_told_when_another_one_closes_the_client(
    fairlead: AsyncFairlead,
) -> None:
    """It does not connect again: nobody would close that connection."""
    events = fairlead.follow("ses_a", after=0)
    assert (await anext(events)).seq == 1
    waiting = asyncio.ensure_future(anext(events))
    await asyncio.sleep(0.05)
    await fairlead.aclose()

    async with asyncio.timeout(JOIN_S):
        with pytest.raises(ClientClosed):
            await waiting


async def test_a_closed_client_says_so(
    synchronous: Callable[[], Fairlead], fairlead: AsyncFairlead
) -> None:
    await fairlead.aclose()
    with pytest.raises(ClientClosed):
        await fairlead.pending("ses_a")

    closed = synchronous()
    closed.close()
    closed.close()
    with pytest.raises(ClientClosed):
        closed.pending("ses_a")


async def test_a_stream_may_be_closed_behind_its_client(
    synchronous: Callable[[], Fairlead],
) -> None:
    def leave_one_open() -> None:
        fairlead = synchronous()
        events = fairlead.follow("ses_a", after=0)
        assert next(events).seq == 1
        fairlead.close()
        events.close()

    await asyncio.to_thread(leave_one_open)


async def test_the_collector_of_garbage_may_close_a_stream_in_the_thread_of_nats(
    server: Server, seed: Path, ingest: ScriptedIngest
) -> None:
    """It runs in any thread. That thread cannot wait for itself."""
    await ingest.write(1)

    loops: list[asyncio.AbstractEventLoop] = []

    def note_loop() -> str:
        loops.append(asyncio.get_running_loop())
        return "unused"

    def forget_a_stream() -> None:
        login = NatsLogin(server.url, nkey_file=seed, token=note_loop)
        with Fairlead.over_nats(login) as fairlead:
            has_collected = threading.Event()

            def collect() -> None:
                gc.collect()
                has_collected.set()

            gc.disable()
            try:
                _read_and_forget(fairlead)
                loops[0].call_soon_threadsafe(collect)
                assert has_collected.wait(JOIN_S)
            finally:
                gc.enable()
            assert [received.seq for received in fairlead.events("ses_a")] == [1]

    await asyncio.to_thread(forget_a_stream)


def _read_and_forget(fairlead: Fairlead) -> None:
    """Leave a stream in a cycle, so that only the collector of garbage finds it."""
    events = fairlead.follow("ses_a", after=0)
    next(events)
    forgotten: list[object] = [events]
    forgotten.append(forgotten)


FOLLOWER = """
import sys
from pathlib import Path
from fairlead_client import Fairlead, NatsLogin

url, seed = sys.argv[1:]
fairlead = (
    Fairlead(url) if url.startswith("http") else Fairlead.over_nats(NatsLogin(url, nkey_file=Path(seed)))
)
for event in fairlead.follow("ses_a", after=0):
    print(event.seq, flush=True)
"""


@pytest.mark.parametrize("way", ["http", "nats"])
async def test_ctrl_c_ends_a_program_that_follows_and_closes_nothing(
    way: str, silent_gateway: str, server: Server, seed: Path, ingest: ScriptedIngest
) -> None:
    """With every warning as an error: the interpreter finds nothing that nobody waited for."""
    await ingest.write(1)
    url = silent_gateway if way == "http" else server.url
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "error", "-c", FOLLOWER, url, str(seed)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"1\n"
    process.send_signal(signal.SIGINT)
    async with asyncio.timeout(JOIN_S):
        _out, errors = await process.communicate()

    assert process.returncode == -signal.SIGINT
    assert errors.decode().strip().endswith("KeyboardInterrupt")
    assert b"never awaited" not in errors
    assert b"Warning" not in errors
