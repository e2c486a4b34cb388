"""The simulated provider's HTTP application. The only place here that knows the framework."""

import asyncio
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from fairlead_cli.sim import anthropic_messages, chat, gemini, openai_responses
from fairlead_cli.sim.calls import Calls
from fairlead_cli.sim.choice import choose
from fairlead_cli.sim.directive import BadDirective
from fairlead_cli.sim.response import Dialect, Play, played, refused
from fairlead_cli.sim.scenario import Scenario
from fairlead_cli.sim.script import Refusal, steady
from fairlead_cli.sim.send import perform

DIALECTS: Mapping[str, Dialect] = MappingProxyType(
    {
        "anthropic-messages": anthropic_messages,
        "openai-responses": openai_responses,
        "openai-chat": chat,
        "gemini": gemini,
    }
)
PATHS: Mapping[str, str] = MappingProxyType(
    {
        "/v1/messages": "anthropic-messages",
        "/v1/responses": "openai-responses",
        "/v1/chat/completions": "openai-chat",
        "/v1beta/models/{model:path}:{verb}": "gemini",
        "/v1/models/{model:path}:{verb}": "gemini",
    }
)
_VERBS = MappingProxyType({"generateContent": False, "streamGenerateContent": True})
_KEYS = ("x-api-key", "x-goog-api-key")


@dataclass(frozen=True, slots=True)
class Settings:
    """`api_key` is demanded of every call when set; `keep` bounds the remembered requests."""

    api_key: str | None = field(default=None, repr=False)
    keep: int = 100
    seed: int = 0
    scenarios: tuple[Scenario, ...] = ()


def build(settings: Settings, *, closing: asyncio.Event | None = None) -> Starlette:
    """The application. Setting `closing` ends every answer that still waits."""
    calls = Calls(settings.keep, settings.seed)
    ends = closing or asyncio.Event()

    async def told(_request: Request) -> Response:
        return Response(orjson.dumps(calls.told()), media_type="application/json")

    async def reset(_request: Request) -> Response:
        calls.reset()
        return Response(status_code=204)

    answers = [
        Route(path, _Answers(protocol, settings, calls, ends), methods=["POST"])
        for path, protocol in PATHS.items()
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
        self, protocol: str, settings: Settings, calls: Calls, closing: asyncio.Event
    ) -> None:
        self._protocol = protocol
        self._dialect = DIALECTS[protocol]
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
        digest, attempt = self._calls.note(self._protocol, session, request.url.path, body)
        if not self._known(request):
            return self._refused(401, "Incorrect API key provided.", "invalid_api_key")
        verb = request.path_params.get("verb")
        if verb is not None and verb not in _VERBS:
            return self._refused(404, f"Unknown verb: {verb}")
        asked = _addressed(_parsed(body), request.path_params)
        complaint = self._dialect.complaint(asked)
        if complaint is not None or not isinstance(asked, dict):
            return self._refused(400, complaint or "The body is not a JSON object.")
        ask = self._dialect.ask(asked)
        try:
            script = choose(ask, self._settings.scenarios, int(digest, 16) % 100)
        except BadDirective as error:
            return self._refused(400, str(error), "bad_sim_directive")
        return played(self._dialect, steady(script, attempt), ask, self._dialect.PREFIX + digest)

    def _known(self, request: Request) -> bool:
        """Each protocol has a header of its own for the key; any of them will do."""
        key = self._settings.api_key
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        given = (bearer, *(request.headers.get(name, "") for name in _KEYS))
        return key is None or any(hmac.compare_digest(key.encode(), one.encode()) for one in given)

    def _refused(self, status: int, message: str, code: str | None = None) -> Play:
        return refused(self._dialect, Refusal(status, message, code))


def _addressed(body: object, at: Mapping[str, Any]) -> object:
    """The body with the model and the verb that its path names, if that names any."""
    if "verb" not in at or not isinstance(body, dict):
        return body
    return body | {"model": at["model"], "stream": _VERBS[at["verb"]]}


def _parsed(body: bytes) -> object:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
