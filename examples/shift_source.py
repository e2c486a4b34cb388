"""A context source of another service: every model is told which shift works."""

import asyncio
import os
import sys
from typing import Any

from faststream import FastStream
from faststream.nats import NatsBroker
from faststream.nats.security import NatsNKey

broker = NatsBroker(
    os.environ["FAIRLEAD_NATS_URL"],
    security=NatsNKey(os.environ["FAIRLEAD_NATS_NKEY_FILE"]),
    inbox_prefix="_INBOX_local",
    max_reconnect_attempts=-1,
)
app = FastStream(broker)
SHIFT = sys.argv[1] if len(sys.argv) > 1 else "day"
SOURCE: dict[str, Any] = {
    "key": "acme/shift",
    "subject": "fairlead.app.default.shift",
    "timeoutMs": 2000,
}


@broker.subscriber(SOURCE["subject"], queue="shift")
async def tell(_question: dict[str, object]) -> dict[str, object]:
    """Answer with the value and its texts. The model hears of it only when the value changes."""
    data = {
        "value": SHIFT,
        "baseline": f"The {SHIFT} shift works.",
        "update": f"Now the {SHIFT} shift works.",
        "removed": "Nobody works any more.",
    }
    return {"data": data}


@app.after_startup
async def register() -> None:
    reply = await broker.request(SOURCE, "fairlead.as.default.local.source.register", timeout=10)
    print(reply.body.decode(), flush=True)


if __name__ == "__main__":
    asyncio.run(app.run())
