"""A FastStream application: it publishes orders as prompts, and handles the feed as typed events.

Run it with `python faststream_app.py "How many anchors?" …`: each argument is one order.
"""

import asyncio
import logging
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar
from uuid import uuid4

from faststream import BaseMiddleware, FastStream
from faststream.exceptions import NackMessage, RejectMessage
from faststream.message import StreamMessage
from faststream.middlewares import AckPolicy
from faststream.nats import JStream, NatsBroker, NatsMessage, PullSub
from faststream.nats.security import NatsNKey
from nats.errors import Error
from pydantic import BaseModel, Field
from typing_extensions import override

Data = TypeVar("Data")
DELIVERIES_MAX = 5


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


class Patience(BaseMiddleware):
    """Puts an event back that a handler could not take, later each time, and gives it up in the end."""

    @override
    async def consume_scope(
        self, call_next: Callable[[Any], Awaitable[Any]], msg: StreamMessage[Any]
    ) -> Any:
        try:
            return await call_next(msg)
        except Exception as error:
            deliveries = msg.raw_message.metadata.num_delivered
            print("failed", msg.headers.get("ce-id"), deliveries, repr(error), flush=True)
            if deliveries >= DELIVERIES_MAX:
                raise RejectMessage from error
            raise NackMessage(delay=2**deliveries) from error


broker = NatsBroker(
    os.environ["FAIRLEAD_NATS_URL"],
    security=NatsNKey(os.environ["FAIRLEAD_NATS_NKEY_FILE"]),
    inbox_prefix="_INBOX_local",
    max_reconnect_attempts=-1,
    middlewares=[Patience],
    log_level=logging.DEBUG,
)
app = FastStream(broker)
# One event at a time keeps the events of a session in order.
feed = broker.subscriber(
    "fairlead.event.default.>",
    stream=JStream("EVENTS", declare=False),
    durable="feed-default-local",
    pull_sub=PullSub(batch_size=1),
    inbox_prefix=b"_INBOX_local.",
    ack_policy=AckPolicy.NACK_ON_ERROR,
)


def is_type(name: str) -> Callable[[NatsMessage], bool]:
    """The headers are attributes of CloudEvents: no body is read to route it."""
    return lambda message: message.headers.get("ce-type") == name


@feed(filter=is_type("session.next.text.ended"))
async def on_text(event: Event[TextEnded]) -> None:
    """Handle an answer. It may come twice after a crash: compare event ids where that matters."""
    print("answer", event.data.session_id, event.data.text, flush=True)


@feed(filter=is_type("session.next.step.failed"))
async def on_failure(event: Event[StepFailed]) -> None:
    print("failure", event.data.session_id, event.data.error, flush=True)


@feed
async def on_others(_body: bytes) -> None:
    """Acknowledge what nobody here wants."""


async def ask(verb: str, body: dict[str, object]) -> dict[str, Any]:
    """Call a verb; its answer has `data` or `error`."""
    reply = await broker.request(body, f"fairlead.as.default.local.{verb}", timeout=10)
    answer: Any = await reply.decode()
    if "error" in answer:
        raise RuntimeError(answer["error"])
    data: dict[str, Any] = answer["data"]
    return data


async def publish_order(order: str) -> None:
    """Publish an order to the durable intake, until the server has it on disk.

    The ids stay the same from one try to the next, so the prompt is admitted once.
    """
    session = f"ses_{uuid4().hex}"
    prompt = {"id": f"msg_{uuid4().hex}", "prompt": {"text": order}}
    while True:
        try:
            await ask("session.create", {"id": session})
            await broker.publish(prompt, f"fairlead.prompt.default.{session}", stream="PROMPTS")
        except (Error, TimeoutError) as error:
            print("tries again", repr(error), flush=True)
            await asyncio.sleep(1)
        else:
            print("published", session, flush=True)
            return


@app.on_startup
async def open_feed() -> None:
    """Make the durable consumer, or go on with it, before its subscriber starts."""
    await broker.connect()
    await ask("feed.open", {})


@app.after_startup
async def publish_orders() -> None:
    for order in sys.argv[1:]:
        await publish_order(order)


if __name__ == "__main__":
    asyncio.run(app.run())
