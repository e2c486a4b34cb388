"""A service that registers tools over NATS and answers for them, as a process that tests kill.

`python -m fairlead_testing.tool_service URL FILE [REGISTRATION…]`: each registration is the JSON body of
`tool.register`; every call leaves a line in the file. Queued calls are noted and left to the test.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import nats
from nats.aio.msg import Msg


def note(line: str) -> None:
    """One line per call, so that calls can be counted."""
    with Path(sys.argv[2]).open("a") as file:
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


async def main() -> None:
    """Register, then answer for ever."""
    client = await nats.connect(sys.argv[1])
    for body in sys.argv[3:]:
        registration = json.loads(body)
        if registration.get("mode") == "queue":
            await client.jetstream().subscribe(
                registration["subject"], durable="tests", cb=on_job, manual_ack=True
            )
        else:
            await client.subscribe(registration["subject"], cb=on_call)
        answer = await client.request("fairlead.api.default.tool.register", body.encode(), 10)
        note(f"registered {answer.data.decode()}")
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
