"""A seeded workload: sessions with tools, asks, sub-agents, long histories, and sudden ends."""

import asyncio
import json
import random
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

import orjson

from fairlead_schema import subjects
from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_schema.subjects import Address
from fairlead_testing.session_driver import probe_prompt
from fairlead_testing.stack import Stack
from tests.chaos.callers import until_answered, until_stored
from tests.chaos.person import Person
from tests.chaos.promises import Promised

Kind: TypeAlias = Literal[
    "plain", "asking", "questioning", "parent", "published", "deleted", "small", "blind"
]

TOOLS: Final = ("probe_once", "probe_once", "probe_pure", "probe_idempotent")
KINDS: Final[tuple[Kind, ...]] = (
    *("plain", "plain", "plain", "plain", "asking", "asking", "questioning"),
    *("parent", "parent", "published", "published", "deleted", "small", "small", "blind"),
)
# Somebody answers what they ask.
LOOKED_AFTER: Final = frozenset({"asking", "questioning", "deleted"})
# Asks for each `once` call, and windows with room for a few prompts: foreseen, and learned by refusal.
CONFIG: Final = """
default_model = "sim/fast"

[agent.asking]
permissions = [ {{ action = "probe_once", resource = "*", effect = "ask" }} ]

[compaction]
buffer = 600
keep_tokens = 600
summary_tokens = 300

[provider.sim]
protocol = "openai-chat"
base_url = "http://127.0.0.1:{port}"

[provider.sim.model.fast]
context = 200_000
output = 8_192

[provider.sim.model.small]
id = "fast"
context = 4_800
output = 200

[provider.sim.model.blind]
id = "recall-1500-delay-20"
context = 100_000
output = 200
"""
FACT: Final = "Fact: the cargo is salt."
QUESTION: Final = "What is the cargo?"
SEA: Final = "Tell me of the sea and of the long way over it, of wind and of weather. "


@dataclass(slots=True)
class Workload:
    """Some sessions, lived side by side; the same seed gives the same prompts and answers."""

    up: Stack
    seed: int | str
    promised: Promised = field(default_factory=Promised)
    _people: dict[str, tuple[Person, asyncio.Task[None]]] = field(default_factory=dict)

    async def run_session(self, number: int, *, begin_s: float = 0.0) -> str:
        """One session from its creation to its last prompt but one; the answer is its id."""
        luck = random.Random(f"{self.seed}:{number}")  # noqa: S311 - a plan, not a secret
        session, kind = f"ses_chaos{self.seed}x{number}", luck.choice(KINDS)
        await asyncio.sleep(begin_s)
        await until_answered(self.up, "session.create", {"id": session, **_session_options(kind)})
        self.promised.kinds[session] = kind
        if kind in LOOKED_AFTER:
            self._look_after(session, number)
        for prompt in range(luck.randint(*_prompts(kind))):
            text = _text(luck, kind, f"k{self.seed}x{number}x{prompt}", first=prompt == 0)
            delivery = "steer" if kind == "blind" else luck.choice(("steer", "steer", "queue"))
            over_http = luck.random() < 0.3
            if kind == "published":
                await self.publish(session, f"m{prompt}", text, delivery)
            else:
                await self.say(session, f"m{prompt}", text, delivery, over_http=over_http)
            await asyncio.sleep(luck.uniform(0, 0.6))
            await self._disturb(session, luck, kind)
        if kind == "deleted":
            await self._delete(session)
        return session

    async def close(self, sessions: Iterable[str]) -> None:
        """A last prompt for each: what an interrupt or a decline left behind is asked for again."""
        await asyncio.gather(*(person.close() for person, _ in self._people.values()))
        alive = [session for session in sessions if session not in self.promised.deleted]
        await asyncio.gather(*(self._say_last(session) for session in alive))

    async def leave(self) -> None:
        """Nobody answers any more."""
        for _, attending in self._people.values():
            attending.cancel()
        for _, attending in self._people.values():
            with suppress(asyncio.CancelledError):
                await attending

    async def say(
        self, session: str, name: str, text: str, delivery: str, *, over_http: bool = False
    ) -> None:
        message = _message_id(session, name)
        body = {"id": message, "prompt": {"text": text}, "delivery": delivery}
        command = {"sessionID": session, **body}
        await until_answered(self.up, "session.prompt", command, over_http=over_http)
        self.promised.acknowledge(session, message)

    async def publish(self, session: str, name: str, text: str, delivery: str) -> None:
        """Publish a prompt and forget it: the server's acknowledgement is the promise."""
        message = _message_id(session, name)
        body = {"id": message, "prompt": {"text": text}, "delivery": delivery}
        subject = subjects.prompt(Address(DEFAULT_TENANT, session))
        await until_stored(lambda: self.up.eventlog.work.put(subject, orjson.dumps(body)))
        self.promised.published.setdefault(session, set()).add(message)

    async def _delete(self, session: str) -> None:
        """A repeated delete may find nothing: the first has worked, and its answer was lost."""
        command = {"sessionID": session}
        await until_answered(self.up, "session.delete", command, final={"SessionNotFoundError"})
        self.promised.deleted.add(session)

    async def _say_last(self, session: str) -> None:
        blind = self.promised.kinds[session] == "blind"
        await self.say(session, "last", QUESTION if blind else "last words", "steer")

    async def _disturb(self, session: str, luck: random.Random, kind: Kind) -> None:
        """Now and then somebody interrupts, or wants a summary."""
        if luck.random() < 0.2:
            await until_answered(self.up, "session.interrupt", {"sessionID": session})
        if kind in {"small", "blind"} and luck.random() < 0.3:
            await until_answered(self.up, "session.compact", {"sessionID": session})

    def _look_after(self, session: str, number: int) -> None:
        luck = random.Random(f"{self.seed}:{number}:person")  # noqa: S311 - a plan, not a secret
        person = Person(self.up, session, luck, self.promised)
        self._people[session] = person, asyncio.create_task(person.attend())


def _message_id(session: str, name: str) -> str:
    return f"msg_{session.removeprefix('ses_')}_{name}"


def _session_options(kind: Kind) -> dict[str, Any]:
    if kind in {"asking", "deleted"}:
        return {"agent": "asking"}
    if kind in {"small", "blind"}:
        return {"model": {"providerID": "sim", "id": kind}}
    return {}


def _prompts(kind: Kind) -> tuple[int, int]:
    """A window is outgrown by some long prompts."""
    return {"small": (3, 5), "blind": (6, 9)}.get(kind, (1, 3))


def _text(luck: random.Random, kind: Kind, key: str, *, first: bool) -> str:
    if kind == "blind":
        return f"{FACT} {key}" if first else f"{SEA * luck.randint(8, 16)} {key}"
    words = SEA * luck.randint(8, 24) if kind == "small" else ""
    plain: tuple[Callable[[], str], ...] = (
        lambda: f"hello {key}",
        lambda: f"[[sim: chunks={luck.randint(5, 20)} delay_ms=30]] {key}",
        lambda: f"[[sim: reasoning=hm answer=ok]] {key}",
    )
    tooled: tuple[Callable[[], str], ...] = (
        lambda: probe_prompt(key, luck.randint(0, 1000), tool=luck.choice(TOOLS)),
        lambda: probe_prompt(key, luck.randint(0, 50), tool=luck.choice(TOOLS)),
    )
    permission_calls: tuple[Callable[[], str], ...] = (
        lambda: probe_prompt(key, luck.randint(0, 300), tool="probe_once"),
        lambda: probe_prompt(key, 0, tool="probe_once"),
    )
    special: dict[Kind, tuple[Callable[[], str], ...]] = {
        "asking": (*permission_calls, *permission_calls, *plain),
        "deleted": (*permission_calls, *plain, *tooled),
        "questioning": (_question_prompt, _question_prompt, *plain),
        "parent": (lambda: _task_prompt(f"count {key}"), lambda: _task_prompt(SEA * 8), *tooled),
    }
    return f"{words}{luck.choice(special.get(kind, (*plain, *tooled)))()}"


def _question_prompt() -> str:
    arguments = json.dumps({"questions": [{"question": "Which colour?", "header": "Colour"}]})
    return f"[[sim: tool=question args='{arguments}' ; answer=thanks]] go"


def _task_prompt(work: str) -> str:
    arguments = json.dumps({"agent": "general", "description": "some work", "prompt": work})
    return f"[[sim: tool=task args='{arguments}' ; answer=done]] go"
