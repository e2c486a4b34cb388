"""A FastStream application: it publishes orders as prompts, and handles the answers as typed events.

Run it with `python faststream_app.py "How many anchors?" …`: each argument is one order.
"""

import asyncio
import os
import sys
from contextlib import suppress
from typing import Generic, TypeVar
from uuid import uuid4

from faststream import FastStream
from faststream.nats import NatsBroker
from nats import errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from pydantic import BaseModel, Field

Data = TypeVar("Data")


class Event(BaseModel, Generic[Data]):
    """A message of the feed. docs/asyncapi.json has the data of every type."""

    id: str
    type: str
    data: Data


class TextEnded(BaseModel):
    """The model has written a text."""

    session_id: str = Field(alias="sessionID")
    text: str


class StepFailed(BaseModel):
    """A turn of the model failed."""

    session_id: str = Field(alias="sessionID")
    error: dict[str, object]


broker = NatsBroker(
    os.environ["FAIRLEAD_NATS_URL"],
    nkeys_seed=os.environ["FAIRLEAD_NATS_NKEY_FILE"],
    inbox_prefix="_INBOX_local",
)
app = FastStream(broker)
background: list[asyncio.Task[None]] = []


async def on_text(event: Event[TextEnded]) -> None:
    """Handle an answer. It may come twice after a crash: compare event ids where that matters."""
    print("answer", event.data.session_id, event.data.text, flush=True)


async def on_failure(event: Event[StepFailed]) -> None:
    print("failure", event.data.session_id, event.data.error, flush=True)


async def handle(message: Msg) -> None:
    """Give an event to its handler. The headers are attributes of CloudEvents: no body is read to route it."""
    match (message.headers or {}).get("ce-type"):
        case "session.next.text.ended":
            await on_text(Event[TextEnded].model_validate_json(message.data))
        case "session.next.step.failed":
            await on_failure(Event[StepFailed].model_validate_json(message.data))
        case _:
            pass
    await message.ack()


async def follow_feed(client: Client) -> None:
    """Pull from the durable consumer, which goes on where the application stopped."""
    opened = await ask("feed.open", {})
    feed = await client.jetstream().pull_subscribe_bind(
        consumer=opened["consumer"], stream=opened["stream"]
    )
    while True:
        with suppress(errors.TimeoutError):
            for message in await feed.fetch(50, timeout=1):
                await handle(message)


async def ask(verb: str, body: dict[str, object]) -> dict[str, str]:
    """Call a verb; its answer has `data` or `error`."""
    reply = await broker.request(body, f"fairlead.as.default.local.{verb}", timeout=10)
    answer = await reply.decode()
    assert isinstance(answer, dict)
    if "error" in answer:
        raise RuntimeError(answer["error"])
    data: dict[str, str] = answer["data"]
    return data


@app.after_startup
async def publish_orders() -> None:
    """Publish each order to the durable intake: the acknowledgement means that it is on disk."""
    background.append(asyncio.create_task(follow_feed(await broker.connect())))
    for order in sys.argv[1:]:
        session = (await ask("session.create", {}))["id"]
        prompt = {"id": f"msg_{uuid4().hex}", "prompt": {"text": order}}
        await broker.publish(prompt, f"fairlead.prompt.default.{session}", stream="PROMPTS")
        print("published", session, flush=True)


if __name__ == "__main__":
    asyncio.run(app.run())
