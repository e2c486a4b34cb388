"""The durable intake through real processes: a published prompt outlives the ingest that had it."""

import asyncio
import signal
import time

import orjson
import pytest

from fairlead_eventlog.streams import INTAKE_DEADLINE_S
from fairlead_schema import subjects
from fairlead_schema.subjects import Address
from fairlead_testing.stack import Stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(180),
]

TRIALS = 3


async def test_a_prompt_published_after_a_kill_is_admitted_soon(up: Stack) -> None:
    """D2: the server may hand the prompt to the dead ingest, and then to the next one."""
    slowest_s = 0.0
    for _ in range(TRIALS):
        session = await up.session()
        up.up.kill("ingest", 0, signal.SIGKILL)
        began = time.monotonic()
        body = orjson.dumps({"prompt": {"text": "are you there?"}})
        await up.eventlog.work.put(subjects.prompt(Address("default", session)), body)
        await up.until(session, "prompt.admitted")
        slowest_s = max(slowest_s, time.monotonic() - began)
        await asyncio.sleep(0.2)
        await up.up.wait_ready()

    # The deadline, and generous room for a busy machine.
    assert slowest_s < INTAKE_DEADLINE_S + 12, slowest_s
