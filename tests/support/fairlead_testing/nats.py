"""A nats-server that a test owns."""

import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fairlead_cli.embedded.ports import free_port
from fairlead_cli.local_stack.server_programs import find_nats_server
from fairlead_eventlog.grants.key_directory import KeyDirectory
from fairlead_schema.identity.nats_address import NatsAddress


@dataclass
class Server:
    """A nats-server of our own on a free loopback port."""

    directory: Path
    port: int
    process: subprocess.Popen[bytes] | None = None
    room: str = ""
    """How much it may store, as its configuration says it; all there is, if empty."""
    more: str = ""
    """What else its configuration says."""
    jetstream: bool = True

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    @property
    def address(self) -> NatsAddress:
        return NatsAddress(self.url)

    def start(self) -> None:
        config = self.directory / "nats.conf"
        limit = f", max_file_store: {self.room}" if self.room else ""
        store = f'store_dir: "{self.directory / "js"}", sync_interval: always{limit}'
        jetstream = f"jetstream {{ {store} }}" if self.jetstream else ""
        config.write_text(
            f'listen: "127.0.0.1:{self.port}"\n{jetstream}\n'
            f"{'' if 'max_payload' in self.more else 'max_payload: 8MB'}\n{self.more}\n"
        )
        self.process = subprocess.Popen(
            [find_nats_server(), "--config", config],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", self.port), 0.2).close()
            except OSError:
                time.sleep(0.02)
            else:
                return
        raise AssertionError("nats-server did not start")

    def reload(self) -> None:
        """Let the server read its configuration again. Returns before the server has done so."""
        assert self.process is not None
        self.process.send_signal(signal.SIGHUP)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait(10)


@contextmanager
def run_guarded_server(keys: KeyDirectory, more: str = "") -> Iterator[Server]:
    """Run a server under the grants of a directory of keys, beside that directory."""
    include = f'include "{keys.root.name}/auth.conf"'
    server = Server(keys.root.parent, free_port(), more=f"{include}\n{more}")
    server.start()
    try:
        yield server
    finally:
        server.kill()
