"""A billing service: it adds up what sessions cost, and counts each event once.

Run it with `python billing.py DATABASE`. Stop it or kill it whenever you like: it goes on where it stopped.
With `--again` it reads the whole feed once more, which changes no sum.
"""

import asyncio
import json
import os
import sqlite3
import sys
from typing import Any

import nats
import nats.errors
from nats.aio.msg import Msg

TABLE = "CREATE TABLE IF NOT EXISTS charge (event TEXT PRIMARY KEY, session TEXT, cost REAL, tokens INT)"
CHARGE = "INSERT OR IGNORE INTO charge VALUES (?, ?, ?, ?)"


def charge(message: Msg) -> tuple[str, str, float, int] | None:
    """What an event costs. The id of the event is the key, so a second delivery adds nothing."""
    headers = message.headers or {}
    if headers.get("ce-type") != "session.next.step.ended":
        return None
    data: dict[str, Any] = json.loads(message.data)["data"]
    tokens = data["tokens"]["input"] + data["tokens"]["output"]
    return headers["ce-id"], headers["ce-subject"], data["cost"], tokens


async def main(database: str, *, again: bool) -> None:
    client = await nats.connect(
        os.environ["FAIRLEAD_NATS_URL"],
        nkeys_seed=os.environ["FAIRLEAD_NATS_NKEY_FILE"],
        inbox_prefix="_INBOX_local",
    )
    body = json.dumps({"after": 0} if again else {}).encode()
    reply = await client.request("fairlead.as.default.local.feed.open", body, timeout=10)
    opened = json.loads(reply.data)["data"]
    feed = await client.jetstream().pull_subscribe_bind(
        consumer=opened["consumer"], stream=opened["stream"]
    )
    charges = sqlite3.connect(database)
    charges.execute(TABLE)
    print("ready", flush=True)
    while True:
        try:
            messages = await feed.fetch(100, timeout=1)
        except nats.errors.TimeoutError:
            continue
        with charges:
            charges.executemany(CHARGE, filter(None, map(charge, messages)))
        # Acknowledge after the commit: a crash in between brings the events again.
        for message in messages:
            await message.ack()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], again="--again" in sys.argv))
