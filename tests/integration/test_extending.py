"""The guide about extending, run against a stack: its services register, answer, hang and die."""

import asyncio
import re
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from fairlead_testing.session_driver import events_of, say, wait_until_settled
from fairlead_testing.stack import Stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(180),
]

GUIDE = Path(__file__).parents[2] / "docs/guide/extending.md"
PROGRAMS = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(), re.DOTALL | re.MULTILINE)


@asynccontextmanager
async def run_program(up: Stack, marker: str) -> AsyncIterator[Process]:
    """A program of the guide as a process, from its registration on."""
    (program,) = [program for program in PROGRAMS if marker in program]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        program,
        up.up.nats,
        str(up.up.local_client.nkey_file),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        await read_answer(process)
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def read_answer(process: Process) -> bytes:
    """The next line of a program: the answer to its request."""
    assert process.stdout is not None
    line = await asyncio.wait_for(process.stdout.readline(), 60)
    assert line.startswith(b'{"data":'), line
    return line


def uses(log: list[Any]) -> list[str]:
    """The outcome of every transform of every attempt."""
    return [
        f"{use.name} {use.version} {use.outcome}"
        for event in events_of(log, "attempt.dispatched")
        for use in event.transforms or ()
    ]


async def test_the_guides_transform_works_and_its_death_withholds_the_request(up: Stack) -> None:
    """P-20: stopped or dead, a closed transform withholds the request; when it is back, work goes on."""
    session = await up.session()
    async with run_program(up, "acme/redact") as service:
        await say(up, session, "Write to ann@acme.org")
        log = await wait_until_settled(up, session)
        assert uses(log) == ["acme/redact 1.0.0 applied"]
        assert [event.text for event in events_of(log, "text.ended")] == [
            "You said: Write to [e-mail]"
        ]
        assert events_of(log, "prompt.admitted")[0].prompt.text == "Write to ann@acme.org"

        service.send_signal(signal.SIGSTOP)
        await say(up, session, "And to bob@acme.org")
        log = await up.until(session, "execution.released", count=2)
        assert "acme/redact: timeout" in events_of(log, "execution.released")[-1].detail
        service.kill()

    assert len(events_of(log, "attempt.dispatched")) == 1
    async with run_program(up, "acme/redact"):
        log = await wait_until_settled(up, session)
    answers = [event.text for event in events_of(log, "text.ended")]
    assert answers == ["You said: Write to [e-mail]", "You said: And to [e-mail]"]
    assert (await up.ask("transform.remove", {"name": "acme/redact"}))["data"] == {"transforms": []}

    await say(up, session, "Now to cid@acme.org")
    log = await wait_until_settled(up, session)
    assert events_of(log, "text.ended")[-1].text == "You said: Now to cid@acme.org"
    assert uses(log)[1:] == ["acme/redact 1.0.0 applied"]


async def test_the_guides_source_is_asked_again_only_after_it_announces_a_change(up: Stack) -> None:
    """P-14: an announced change is told at the next boundary; a dead service changes nothing."""
    session = await up.session()

    async def turn() -> list[str]:
        await say(up, session, "hello")
        log = await wait_until_settled(up, session)
        return [event.text for event in events_of(log, "context.updated")]

    async with run_program(up, "acme/duty") as service:
        assert service.stdin is not None
        assert await turn() == []
        assert await turn() == []
        service.stdin.write(b"Bob\n")
        answer = await read_answer(service)
        asked = int(answer.split()[-1])
        assert asked == 1, "two turns, one question"
        assert await turn() == ["Now Bob is on duty."]
        assert await turn() == ["Now Bob is on duty."]

    assert await turn() == ["Now Bob is on duty."]
    await up.ask("source.remove", {"key": "acme/duty"})
    assert (await turn())[-1] == "Nobody is on duty any more."
