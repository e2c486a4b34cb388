"""What the image of Postgres does, with the binaries of the wheel: one database, one administrator."""

import os
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import psycopg

from fairlead_cli.local_stack.server_programs import find_postgres

NOBODY = 65534
PORT = 5432


class PostgresImage:
    """Postgres on the address of its container. The data directory is its volume."""

    def __init__(self, volume: Path, address: str) -> None:
        self._bin = find_postgres() / "bin"
        self._data = volume / "data"
        self._log = volume / "log"
        self._address = address
        self._child: subprocess.Popen[bytes] | None = None
        for directory in (volume, *volume.parents):
            # The server runs as nobody, and has to reach its data.
            if directory.owner() == "root" and directory.stat().st_mode & 0o700 == 0o700:
                directory.chmod(directory.stat().st_mode | 0o111)
        if os.geteuid() == 0:
            os.chown(volume, NOBODY, NOBODY)

    def start(self, environment: Mapping[str, str], password: str) -> None:
        """Make the database at the first start, and wait until the server answers."""
        user, database = environment["POSTGRES_USER"], environment["POSTGRES_DB"]
        is_new = not self._data.exists()
        if is_new:
            file = self._data.parent / "password"
            file.write_text(password)
            file.chmod(0o644)
            options = ("-U", user, f"--pwfile={file}", "--auth=scram-sha-256", "--no-sync")
            child = self._spawn("initdb", "-D", str(self._data), *options)
            assert child.wait() == 0, self._log.read_text()
            file.unlink()
            with (self._data / "pg_hba.conf").open("a") as rules:
                rules.write("host all all 127.0.0.0/8 scram-sha-256\n")
        settings = ("-c", f"listen_addresses={self._address}", "-c", "unix_socket_directories=")
        self._child = self._spawn("postgres", "-D", str(self._data), "-p", str(PORT), *settings)
        parts = {"host": self._address, "port": PORT, "user": user, "password": password}
        deadline = time.monotonic() + 30
        while True:
            try:
                with psycopg.connect(**parts, dbname="postgres", autocommit=True) as connection:  # type: ignore[arg-type]
                    if is_new:
                        connection.execute(f'CREATE DATABASE "{database}"'.encode())
                    return
            except psycopg.OperationalError:
                assert time.monotonic() < deadline, self._log.read_text()
                time.sleep(0.05)

    def stop(self) -> None:
        if self._child is not None:
            self._child.send_signal(signal.SIGINT)
            self._child.wait(30)
            self._child = None

    def _spawn(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        nobody = NOBODY if os.geteuid() == 0 else None
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [self._bin / program, *arguments],
                stdout=log,
                stderr=log,
                cwd=self._data.parent,
                user=nobody,
                group=nobody,
                env={"PATH": os.defpath, "LANG": "C.UTF-8", "TZ": "UTC"},
            )
