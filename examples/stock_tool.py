"""A tool that another service answers: the model asks how many of an article are in stock."""

import asyncio
import os
from typing import Any

from faststream import FastStream
from faststream.nats import NatsBroker
from faststream.nats.security import NatsNKey
from pydantic import BaseModel

broker = NatsBroker(
    os.environ["FAIRLEAD_NATS_URL"],
    security=NatsNKey(os.environ["FAIRLEAD_NATS_NKEY_FILE"]),
    inbox_prefix="_INBOX_local",
    max_reconnect_attempts=-1,
)
app = FastStream(broker)
STOCK = {"anchor": 7, "rope": 120}


class Question(BaseModel):
    """What the model writes."""

    article: str


class Call(BaseModel):
    """A call of the tool. `key` is the same each time Fairlead sends the call."""

    key: str
    input: Question


TOOL: dict[str, Any] = {
    "name": "stock",
    "description": "How many of an article are in stock",
    "inputSchema": Question.model_json_schema(),
    "subject": "fairlead.app.default.stock",
    "retry": "pure",
    "timeoutMs": 5000,
}


@broker.subscriber(TOOL["subject"], queue="stock")
async def count(call: Call) -> dict[str, object]:
    """Answer a call with an output, or with an error that the model reads."""
    article = call.input.article
    if article not in STOCK:
        return {"error": {"message": f"no article {article}"}}
    return {"output": {"article": article, "count": STOCK[article]}}


@app.after_startup
async def register() -> None:
    """Offer the tool, when the service can answer. A repeated registration changes nothing."""
    reply = await broker.request(TOOL, "fairlead.as.default.local.tool.register", timeout=10)
    print(reply.body.decode(), flush=True)


if __name__ == "__main__":
    asyncio.run(app.run())
