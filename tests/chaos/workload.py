"""A seeded workload of careful callers: they retry exactly until they hold a receipt."""

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import httpx
import orjson

from fairlead_eventlog.errors import LogError
from fairlead_testing.driving import calling
from fairlead_testing.stack import Stack
from tests.chaos.checker import Promised

PATIENCE_S: Final = 60.0
AGAIN_S: Final = 0.1
TOOLS: Final = ("probe_once", "probe_once", "probe_pure", "probe_idempotent")


@dataclass(slots=True)
class Workload:
    """Some sessions, lived side by side; the same seed gives the same prompts."""

    up: Stack
    seed: int
    tools: bool = True
    promised: Promised = field(default_factory=Promised)

    async def live(self, number: int, *, begin_s: float = 0.0) -> str:
        """One session from its creation to its last prompt but one; the answer is its id."""
        luck = random.Random(f"{self.seed}:{number}")  # noqa: S311 - a plan, not a secret
        session = f"ses_chaos{self.seed}x{number}"
        await asyncio.sleep(begin_s)
        await self._until_answered("session.create", {"id": session}, over_http=False)
        for prompt in range(luck.randint(1, 3)):
            text = self._text(luck, f"k{self.seed}x{number}x{prompt}")
            delivery = luck.choice(("steer", "steer", "queue"))
            await self.say(session, f"m{prompt}", text, delivery, over_http=luck.random() < 0.3)
            await asyncio.sleep(luck.uniform(0, 0.6))
            if luck.random() < 0.2:
                await self._until_answered("session.interrupt", {"sessionID": session})
        return session

    async def close(self, session: str) -> None:
        """A last prompt: what an interrupt left in the inbox is asked for again."""
        await self.say(session, "last", "last words", "steer")

    async def say(
        self, session: str, name: str, text: str, delivery: str, *, over_http: bool = False
    ) -> None:
        message = f"msg_{session.removeprefix('ses_')}_{name}"
        body = {"id": message, "prompt": {"text": text}, "delivery": delivery}
        asked = {"sessionID": session, **body}
        await self._until_answered("session.prompt", asked, over_http=over_http)
        self.promised.acknowledge(session, message)

    def _text(self, luck: random.Random, key: str) -> str:
        plain: tuple[Callable[[], str], ...] = (
            lambda: f"hello {key}",
            lambda: f"[[sim: chunks={luck.randint(5, 20)} delay_ms=30]] {key}",
            lambda: f"[[sim: reasoning=hm answer=ok]] {key}",
        )
        tooled: tuple[Callable[[], str], ...] = (
            lambda: calling(key, luck.randint(0, 1000), tool=luck.choice(TOOLS)),
            lambda: calling(key, luck.randint(0, 50), tool=luck.choice(TOOLS)),
        )
        return luck.choice((*plain, *tooled) if self.tools else plain)()

    async def _until_answered(
        self, verb: str, body: dict[str, Any], *, over_http: bool = False
    ) -> None:
        """Ask again, exactly the same, until somebody answers with data."""
        answer: dict[str, Any] = {}
        async with asyncio.timeout(PATIENCE_S):
            while "data" not in answer:
                with suppress(LogError, TimeoutError, httpx.HTTPError, orjson.JSONDecodeError):
                    answer = await (self._post(body) if over_http else self.up.ask(verb, body))
                    assert "error" not in answer or _passing(answer["error"]), answer
                if "data" not in answer:
                    await asyncio.sleep(AGAIN_S)

    async def _post(self, body: dict[str, Any]) -> dict[str, Any]:
        rest = {key: value for key, value in body.items() if key != "sessionID"}
        told = await self.up.http.post(f"/api/session/{body['sessionID']}/prompt", json=rest)
        answer: dict[str, Any] = orjson.loads(told.content)
        return answer if told.is_success else {"error": answer}


def _passing(error: dict[str, Any]) -> bool:
    """Whether the same request may succeed later."""
    return error.get("_tag") == "ServiceUnavailableError"
