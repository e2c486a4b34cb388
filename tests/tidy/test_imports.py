"""A service loads at its start only what it needs: every library costs memory in each process."""

import subprocess
import sys

import pytest

UNNEEDED = {
    "ingest": {"aiohttp", "cryptography", "httpx", "mcp", "psycopg", "rich"},
    "projector": {"aiohttp", "cryptography", "httpx", "mcp", "rich"},
    "gateway": {"aiohttp", "cryptography", "faststream", "httpx", "mcp", "nats.js.api", "rich"},
    "tools": {"aiohttp", "cryptography", "PIL", "psycopg"},
    "runner": {"cryptography", "faststream", "mcp", "nats.js.api", "psycopg"},
}
WEB_SOCKETS = """
import sys
from fairlead_eventlog.jetstream.light_import import allow_web_sockets
import nats.aio.transport as transport
assert transport.aiohttp is None
allow_web_sockets(["nats://127.0.0.1:4222"])
assert "aiohttp" not in sys.modules
allow_web_sockets(["nats://127.0.0.1:4222", "wss://127.0.0.1:443"])
assert transport.aiohttp is sys.modules["aiohttp"]
"""
DEFERRED = """
import sys
import fairlead_eventlog.jetstream
import nats
assert "nats.js.api" not in sys.modules
assert nats.js.api.Header.STATUS.value == "Status"
assert nats.js is sys.modules["nats.js"]
from nats.js import JetStreamContext
assert nats.js.JetStreamContext is JetStreamContext
"""


def run(program: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stdout


@pytest.mark.parametrize("service", UNNEEDED)
def test_a_service_loads_no_library_that_it_does_not_need(service: str) -> None:
    loaded = set(run(f"import sys, fairlead_{service}.app; print(*sys.modules)").split())

    assert loaded & UNNEEDED[service] == set()


def test_web_sockets_still_get_their_library() -> None:
    run(WEB_SOCKETS)


def test_a_deferred_module_takes_its_place_when_somebody_uses_it() -> None:
    run(DEFERRED)
