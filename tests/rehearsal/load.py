"""Clients of a deployment: sessions with text, tools, asks and sub-agents, in a few lanes at once.

A client is careful: it asks again, exactly the same, until it holds an answer, and notes what it noticed.
"""

import asyncio
import itertools
import json
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

import httpx

Kind: TypeAlias = Literal["text", "tool", "ask", "sub-agent"]

KINDS: Final[tuple[Kind, ...]] = ("text", "tool", "ask", "sub-agent")
LANES: Final = 3
PATIENCE_S: Final = 180.0
AGAIN_S: Final = 0.25
TASK: Final = json.dumps({"agent": "general", "description": "count", "prompt": "count to three"})
PROMPTS: Final[Mapping[Kind, str]] = {
    "text": "Tell me of {}",
    "tool": """[[sim: tool=glob args='{{"pattern": "*.{}"}}' ; answer=done]] look""",
    "ask": """[[sim: tool=read args='{{"path": ".env"}}' ; answer=done]] read {}""",
    "sub-agent": f"[[sim: tool=task args='{TASK.replace('{', '{{').replace('}', '}}')}' ; answer=done]] {{}}",
}
# While something is restarted or elected, these answers ask for patience.
PATIENT: Final = frozenset({429, 502, 503, 504})


class NoAnswer(AssertionError):
    """A client asked for minutes, and nobody answered."""


@dataclass(frozen=True)
class Acknowledged:
    """A prompt that a client holds a receipt for, since a moment."""

    session: str
    message: str
    at: float


@dataclass
class Load:
    """What clients did and noticed, over all deployments of a rehearsal."""

    acknowledged: list[Acknowledged] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    noticed: Counter[str] = field(default_factory=Counter)
    longest_s: float = 0.0
    number: int = 0
    """Of the last session."""

    def before(self, moment: float) -> list[Acknowledged]:
        """What was acknowledged before a moment."""
        return [each for each in self.acknowledged if each.at < moment]


class Clients:
    """Lanes of sessions against one deployment, from start to stop."""

    def __init__(self, load: Load, url: str, headers: Mapping[str, str]) -> None:
        self._load = load
        self._http = httpx.AsyncClient(base_url=url, headers=headers, timeout=60, trust_env=False)
        self._stopping = False
        self._lanes: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._lanes = [asyncio.create_task(self._run_lane(lane)) for lane in range(LANES)]

    async def stop(self) -> None:
        """Let the sessions under way end. Raises what a client could not bear."""
        self._stopping = True
        try:
            await asyncio.gather(*self._lanes)
        finally:
            await self._http.aclose()

    async def abandon(self) -> None:
        """Leave, whatever the sessions do."""
        for lane in self._lanes:
            lane.cancel()
        await asyncio.gather(*self._lanes, return_exceptions=True)
        await self._http.aclose()

    async def wait_for_sessions(self, count: int) -> None:
        """Wait until so many more sessions have ended."""
        wanted = self._load.counts["sessions"] + count
        while self._load.counts["sessions"] < wanted:
            failed = next((lane for lane in self._lanes if lane.done()), None)
            if failed is not None:
                await failed
            await asyncio.sleep(0.1)

    async def _run_lane(self, lane: int) -> None:
        for kind in itertools.islice(itertools.cycle(KINDS), lane, None):
            if self._stopping:
                return
            await self.live(kind)

    async def live(self, kind: Kind) -> str:
        """One session with two prompts of a kind, each to its end; the answer is its id."""
        self._load.number += 1
        number = self._load.number
        session = f"ses_rehearsal{number:05}"
        model = {"providerID": "sim", "id": "steady"}
        place = {"directory": "/srv/workspaces"}
        await self.send("POST", "/api/session", {"id": session, "location": place, "model": model})
        for turn in range(2):
            await self.prompt(
                session, f"msg_rehearsal{number:05}x{turn}", PROMPTS[kind].format(turn)
            )
            await self._wait_until_rested(session, asks=kind == "ask")
        self._load.counts["sessions"] += 1
        self._load.counts[f"{kind} sessions"] += 1
        return session

    async def prompt(self, session: str, message: str, text: str) -> None:
        body = {"id": message, "prompt": {"text": text}}
        await self.send("POST", f"/api/session/{session}/prompt", body)
        self._load.acknowledged.append(Acknowledged(session, message, time.time()))
        self._load.counts["prompts"] += 1

    async def send(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401 - JSON
        """Send a request again until it has an answer. Raises NoAnswer, HTTPStatusError."""
        begun = time.monotonic()
        while True:
            try:
                answer = await self._http.request(method, path, json=body)
            except httpx.TransportError as error:
                noticed = type(error).__name__
            else:
                if answer.status_code not in PATIENT:
                    answer.raise_for_status()
                    self._load.longest_s = max(self._load.longest_s, time.monotonic() - begun)
                    return answer.json().get("data") if answer.content else None
                noticed = f"{answer.status_code} {answer.json().get('_tag', '')}".strip()
            self._load.noticed[noticed] += 1
            if time.monotonic() - begun > PATIENCE_S:
                raise NoAnswer(f"{method} {path}: {noticed}")
            await asyncio.sleep(AGAIN_S)

    async def _wait_until_rested(self, session: str, *, asks: bool) -> None:
        """Wait for the end of the turn. Whoever is asked answers yes."""
        waiting = asyncio.create_task(self.send("POST", f"/api/session/{session}/wait"))
        try:
            while asks and not waiting.done():
                await self.answer_asks(session)
                await asyncio.sleep(0.2)
            await waiting
        finally:
            waiting.cancel()

    async def answer_asks(self, session: str) -> None:
        """Answer yes to everything that a session asks."""
        for request in await self.send("GET", f"/api/session/{session}/permission") or ():
            await self._reply(session, request["id"])

    async def _reply(self, session: str, request: str) -> None:
        """Permit a call. An ask that is answered already is not found."""
        path = f"/api/session/{session}/permission/{request}/reply"
        try:
            await self.send("POST", path, {"reply": "once"})
        except httpx.HTTPStatusError as error:
            if error.response.status_code != httpx.codes.NOT_FOUND:
                raise
        else:
            self._load.counts["asks answered"] += 1
