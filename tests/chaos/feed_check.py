"""Checks the public feed after the chaos: every public event once, in the order of its log."""

import asyncio
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Final

import orjson

from fairlead_eventlog.errors import LogError
from fairlead_eventlog.jetstream.link import NatsLink
from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_schema import subjects
from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_schema.record import Recorded
from fairlead_schema.subjects import Address
from fairlead_testing.stack import Stack
from tests.chaos.promises import Violation

CATCH_UP_S: Final = 60.0
BATCH: Final = 500


async def judge_feed(
    up: Stack, logs: Mapping[str, list[Recorded]], deleted: Collection[str]
) -> list[Violation]:
    """What the feed lacks, repeats or has in another order than the log."""
    deadline = time.monotonic() + CATCH_UP_S
    broken: list[Violation] = []
    async with open_link(up.up.operator, name="chaos-feed") as link:
        for session, log in logs.items():
            public = [item.seq for item in log if item.event.visibility != "private"]
            if session in deleted:
                public = public[-1:]
            told = await _read_feed(link, session)
            while told != public and time.monotonic() < deadline:
                await asyncio.sleep(0.1)
                told = await _read_feed(link, session)
            broken += compare_feed(session, public, told)
    return broken


def compare_feed(session: str, public: list[int], told: list[int]) -> list[Violation]:
    """The differences of one session's feed from its log."""
    if told == public:
        return []
    missing = sorted(set(public) - set(told))
    if missing:
        return [Violation("lost", session, f"the feed lacks the events {missing}")]
    if len(told) > len(set(told)) or set(told) > set(public):
        return [Violation("doubled", session, f"the feed has {told}, the log {public}")]
    return [Violation("other", session, f"the feed has another order: {told}")]


async def _read_feed(link: NatsLink, session: str) -> list[int]:
    subject = subjects.event(Address(DEFAULT_TENANT, session), ">")
    told: list[int] = []
    first, left = 1, 1
    while left:
        with suppress(LogError):
            got, left = await link.read_subject("EVENTS", subject, first=first, batch=BATCH)
            told += [orjson.loads(item.payload)["durable"]["seq"] for item in got]
            first = got[-1].sequence + 1 if got else first
    return told
