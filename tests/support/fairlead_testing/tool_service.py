"""A service that registers tools over NATS and answers for them, as a process that tests kill.

`python -m fairlead_testing.tool_service URL KEY FILE [REGISTRATION…]`: each registration is the JSON body of
`tool.register`; every call leaves a line in the file. Queued calls are noted and left to the test.
"""

import asyncio
import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import nats
import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg

from fairlead_eventlog.grants.tenants import principal_inbox
from fairlead_schema import subjects
from fairlead_schema.identity.principal import LOCAL


def note(line: str) -> None:
    """One line per call, so that calls can be counted."""
    with Path(sys.argv[3]).open("a") as file:
        file.write(f"{line}\n")


async def on_call(msg: Msg) -> None:
    """Double a number; slowly, if the call says so."""
    task: dict[str, Any] = json.loads(msg.data)
    note(f"{task['tool']} {task['key']}")
    await asyncio.sleep(task["input"].get("seconds", 0))
    await msg.respond(json.dumps({"output": {"n": task["input"]["n"] * 2}}).encode())


async def on_job(msg: Msg) -> None:
    """Note who asks; the test answers."""
    note(f"job {msg.data.decode()}")
    await msg.ack()


async def serve_queue(client: Client) -> None:
    """Take the queued calls of this client from the consumer that its registration made."""
    jobs = await client.jetstream().pull_subscribe_bind(
        consumer=subjects.job_consumer(LOCAL.tenant, LOCAL.name), stream="JOBS"
    )
    while True:
        with suppress(nats.errors.TimeoutError):
            for msg in await jobs.fetch(1, timeout=1):
                await on_job(msg)


async def main() -> None:
    """Register, then answer for ever."""
    client = await nats.connect(
        sys.argv[1], nkeys_seed=sys.argv[2], inbox_prefix=principal_inbox(LOCAL)
    )
    queued = False
    for body in sys.argv[4:]:
        registration = json.loads(body)
        queued |= registration.get("mode") == "queue"
        if registration.get("mode") != "queue":
            await client.subscribe(registration["subject"], cb=on_call)
        subject = subjects.as_principal(LOCAL.tenant, LOCAL.name, "tool.register")
        answer = await client.request(subject, body.encode(), 10)
        note(f"registered {answer.data.decode()}")
    if queued:
        await serve_queue(client)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
