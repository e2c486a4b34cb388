"""The HTTP application of the simulated provider: one endpoint for each protocol, and a request log."""

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

from fairlead_cli.sim import anthropic_messages, gemini, openai_chat, openai_responses
from fairlead_cli.sim.choice import choose_script
from fairlead_cli.sim.directive import BadDirective
from fairlead_cli.sim.request_log import RequestLog
from fairlead_cli.sim.response import SimProtocol, SimResponse, build_refusal, build_response
from fairlead_cli.sim.scenario import Scenario
from fairlead_cli.sim.script import HttpRefusal, script_for_attempt
from fairlead_cli.sim.send import send_response
from fairlead_cli.sim.structured import find_wanted_output

PROTOCOLS: Mapping[str, SimProtocol] = MappingProxyType(
    {
        "anthropic-messages": anthropic_messages,
        "openai-responses": openai_responses,
        "openai-chat": openai_chat,
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
_STREAMING_BY_VERB = MappingProxyType({"generateContent": False, "streamGenerateContent": True})
_KEY_HEADERS = ("x-api-key", "x-goog-api-key")


@dataclass(frozen=True, slots=True)
class SimSettings:
    """Every request needs `api_key` when it is set. `keep` bounds the request bodies in the log."""

    api_key: str | None = field(default=None, repr=False)
    keep: int = 100
    seed: int = 0
    scenarios: tuple[Scenario, ...] = ()


def build_app(settings: SimSettings, *, closing: asyncio.Event | None = None) -> Starlette:
    """The application. Setting `closing` ends every response that is still being sent."""
    log = RequestLog(settings.keep, settings.seed)
    shutdown = closing or asyncio.Event()

    async def get_calls(_request: Request) -> Response:
        return Response(orjson.dumps(log.to_json()), media_type="application/json")

    async def reset(_request: Request) -> Response:
        log.reset()
        return Response(status_code=204)

    endpoints = [
        Route(path, _ModelEndpoint(protocol, settings, log, shutdown), methods=["POST"])
        for path, protocol in PATHS.items()
    ]
    return Starlette(
        routes=[
            *endpoints,
            Route("/sim/calls", get_calls, methods=["GET"]),
            Route("/sim/reset", reset, methods=["POST"]),
        ]
    )


class _ModelEndpoint:
    """One protocol's endpoint as plain ASGI: Starlette's streaming costs a task group per response."""

    def __init__(
        self, protocol: str, settings: SimSettings, log: RequestLog, closing: asyncio.Event
    ) -> None:
        self._protocol_name = protocol
        self._protocol = PROTOCOLS[protocol]
        self._settings = settings
        self._log = log
        self._closing = closing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        response = self._respond(request, await request.body())
        await send_response(response, receive, send, closing=self._closing)

    def _respond(self, request: Request, content: bytes) -> SimResponse:
        session = request.headers.get("x-session-id")
        digest, attempt = self._log.add(self._protocol_name, session, request.url.path, content)
        if not self._is_authorised(request):
            return self._refuse(401, "Incorrect API key provided.", "invalid_api_key")
        verb = request.path_params.get("verb")
        if verb is not None and verb not in _STREAMING_BY_VERB:
            return self._refuse(404, f"Unknown verb: {verb}")
        body = _with_path_fields(_parse_json(content), request.path_params)
        reason = self._protocol.refusal_reason(body)
        if reason is not None or not isinstance(body, dict):
            return self._refuse(400, reason or "The body is not a JSON object.")
        model_request = self._protocol.parse_request(body)
        try:
            wanted = find_wanted_output(body)
            draw = int(digest, 16) % 100
            script = choose_script(model_request, self._settings.scenarios, draw, wanted)
        except BadDirective as error:
            return self._refuse(400, str(error), "bad_sim_directive")
        script = script_for_attempt(script, attempt)
        answer_id = self._protocol.ID_PREFIX + digest
        return build_response(self._protocol, script, model_request, answer_id)

    def _is_authorised(self, request: Request) -> bool:
        """Each protocol has its own header for the key; any of them is accepted."""
        key = self._settings.api_key
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        keys = (bearer, *(request.headers.get(name, "") for name in _KEY_HEADERS))
        return key is None or any(
            hmac.compare_digest(key.encode(), candidate.encode()) for candidate in keys
        )

    def _refuse(self, status: int, message: str, code: str | None = None) -> SimResponse:
        return build_refusal(self._protocol, HttpRefusal(status, message, code))


def _with_path_fields(body: object, path_params: Mapping[str, Any]) -> object:
    """The body with the model and the streaming verb of a Gemini path."""
    if "verb" not in path_params or not isinstance(body, dict):
        return body
    stream = _STREAMING_BY_VERB[path_params["verb"]]
    return body | {"model": path_params["model"], "stream": stream}


def _parse_json(body: bytes) -> object:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
