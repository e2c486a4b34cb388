"""The simulated provider's HTTP application. The only place here that knows the framework."""

import asyncio
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import orjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from fairlead_cli.sim import chat
from fairlead_cli.sim.calls import Calls
from fairlead_cli.sim.choice import choose
from fairlead_cli.sim.directive import BadDirective
from fairlead_cli.sim.play import Dialect, Play, played, refused
from fairlead_cli.sim.script import Refusal, steady
from fairlead_cli.sim.stage import perform

DIALECTS: Mapping[str, Dialect] = MappingProxyType({"/v1/chat/completions": chat})


@dataclass(frozen=True, slots=True)
class Settings:
    """`api_key` is demanded of every call when set; `keep` bounds the remembered requests."""

    api_key: str | None = field(default=None, repr=False)
    keep: int = 100


def build(settings: Settings, *, closing: asyncio.Event | None = None) -> Starlette:
    """The application. Setting `closing` ends every answer that still waits."""
    calls = Calls(settings.keep)
    ends = closing or asyncio.Event()

    async def told(_request: Request) -> Response:
        return Response(orjson.dumps(calls.told()), media_type="application/json")

    async def reset(_request: Request) -> Response:
        calls.reset()
        return Response(status_code=204)

    answers = [
        Route(path, _Answers(dialect, settings, calls, ends), methods=["POST"])
        for path, dialect in DIALECTS.items()
    ]
    return Starlette(
        routes=[
            *answers,
            Route("/sim/calls", told, methods=["GET"]),
            Route("/sim/reset", reset, methods=["POST"]),
        ]
    )


class _Answers:
    """One protocol's endpoint, as plain ASGI: a streaming response would cost a task group each."""

    def __init__(
        self, dialect: Dialect, settings: Settings, calls: Calls, closing: asyncio.Event
    ) -> None:
        self._dialect = dialect
        self._settings = settings
        self._calls = calls
        self._closing = closing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        body = await request.body()
        play = self._play(request, body)
        await perform(play, receive, send, closing=self._closing)

    def _play(self, request: Request, body: bytes) -> Play:
        session = request.headers.get("x-session-id")
        digest, attempt = self._calls.note(session, request.url.path, body)
        if not self._known(request.headers.get("authorization", "")):
            return self._refused(401, "Incorrect API key provided.", "invalid_api_key")
        asked = _parsed(body)
        complaint = self._dialect.complaint(asked)
        if complaint is not None or not isinstance(asked, dict):
            return self._refused(400, complaint or "The body is not a JSON object.")
        ask = self._dialect.ask(asked)
        try:
            script = steady(choose(ask), attempt)
        except BadDirective as error:
            return self._refused(400, str(error), "bad_sim_directive")
        return played(self._dialect, script, ask, f"chatcmpl-{digest}")

    def _known(self, authorization: str) -> bool:
        key = self._settings.api_key
        expected = f"Bearer {key}".encode()
        return key is None or hmac.compare_digest(expected, authorization.encode())

    def _refused(self, status: int, message: str, code: str | None = None) -> Play:
        return refused(self._dialect.error, Refusal(status, message, code))


def _parsed(body: bytes) -> object:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
