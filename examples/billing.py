"""A billing service: it adds up what sessions cost, and counts each event once.

Run it with `python billing.py DATABASE`. Stop it or kill it whenever you like: it goes on where it stopped.
What it held when it was killed comes again within 30 seconds. With `--again` it reads the whole feed once
more, which changes no sum.
"""

import asyncio
import json
import os
import signal
import sqlite3
import sys
from typing import Any

import nats
import nats.js.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext

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
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    client = await nats.connect(
        os.environ["FAIRLEAD_NATS_URL"],
        nkeys_seed=os.environ["FAIRLEAD_NATS_NKEY_FILE"],
        inbox_prefix="_INBOX_local",
        max_reconnect_attempts=-1,
    )
    charges = sqlite3.connect(database, timeout=60)
    charges.execute(TABLE)
    feed = await open_feed(client, again=again)
    print("ready", flush=True)
    while not stopped.is_set():
        await charge_batch(feed, charges)
    await client.flush()
    await client.close()
    charges.close()


async def open_feed(client: Client, *, again: bool) -> JetStreamContext.PullSubscription:
    """Make the durable consumer, or go on with it."""
    body = json.dumps({"after": 0} if again else {}).encode()
    reply = await client.request("fairlead.as.default.local.feed.open", body, timeout=10)
    answer = json.loads(reply.data)
    if "error" in answer:
        raise SystemExit(answer["error"]["message"])
    opened = answer["data"]
    return await client.jetstream().pull_subscribe_bind(
        consumer=opened["consumer"], stream=opened["stream"]
    )


async def charge_batch(
    feed: JetStreamContext.PullSubscription, charges: sqlite3.Connection
) -> None:
    """Charge what has come, then acknowledge it: a crash in between brings the events again."""
    try:
        messages = await feed.fetch(100, timeout=1)
    except TimeoutError:
        return
    except nats.js.errors.APIError as error:
        print("pulls again", repr(error), flush=True)  # a server restarts, or another one leads
        await asyncio.sleep(1)
        return
    with charges:
        charges.executemany(CHARGE, filter(None, map(charge, messages)))
    for message in messages:
        await message.ack()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], again="--again" in sys.argv))
