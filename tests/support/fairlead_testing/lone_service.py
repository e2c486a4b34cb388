"""One service as a process of its own, against servers that may be wrong."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from fairlead_cli.embedded.ports import free_port

WAIT_S_MAX = 60.0
# The auditor is a command of `fairlead`.
COMMANDS = {"audit": ("fairlead_cli", "audit")}


@dataclass(frozen=True)
class LoneService:
    """A running service: what its probes say, and what it logged."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    def readiness(self) -> dict[str, Any]:
        """What /readyz says; nothing while the process does not listen yet."""
        try:
            answer = httpx.get(f"http://127.0.0.1:{self.port}/readyz", trust_env=False)
        except httpx.TransportError:
            return {}
        parsed: dict[str, Any] = answer.json()
        return parsed

    def wait_until_ready(self) -> None:
        self._wait(lambda: self.readiness().get("ready") is True)

    def wait_for_complaint(self, text: str) -> dict[str, Any]:
        """Wait until /readyz says a text. The process lives meanwhile."""
        self._wait(lambda: text in json.dumps(self.readiness(), ensure_ascii=False))
        return self.readiness()

    def wait_until_gone(self, text: str) -> None:
        """Wait until /readyz does not say a text any more."""
        self._wait(lambda: (said := self.readiness()) and text not in json.dumps(said))

    def lines_with(self, text: str) -> list[str]:
        """The lines of the log that contain a text."""
        lines = self.log.read_text().splitlines()
        return [line for line in lines if text in line.replace('\\"', '"')]

    def _wait(self, is_met: Callable[[], object]) -> None:
        deadline = time.monotonic() + WAIT_S_MAX
        while not is_met():
            text = f"{self.readiness()}\n{self.log.read_text()[-3000:]}"
            assert self.process.poll() is None, f"the service ended: {text}"
            assert time.monotonic() < deadline, text
            time.sleep(0.1)


@contextmanager
def run_service(name: str, env: Mapping[str, str], place: Path) -> Iterator[LoneService]:
    """Run a service with these settings alone."""
    port, log = free_port(), place / f"{name}-{free_port()}.log"
    settings = {"FAIRLEAD_HEALTH_PORT": str(port), "FAIRLEAD_GATEWAY_PORT": str(free_port()), **env}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", *COMMANDS.get(name, (f"fairlead_{name}",))],
            env={"PATH": os.environ["PATH"], **settings},
            cwd=place,
            stdout=output,
            stderr=output,
        )
    try:
        yield LoneService(process, port, log)
    finally:
        process.terminate()
        process.wait(30)
