"""The HTTP function with a transport in memory: its requests, and every kind of refusal."""

from collections.abc import AsyncIterator, Callable

import httpx
import orjson
import pytest
from typing_extensions import override

from fairlead_llm.endpoint import ProviderEndpoint
from fairlead_llm.http import stream
from fairlead_schema.provider.events import ProviderEvent, ProviderFailure, StepFinish, TextChunk
from fairlead_schema.provider.request import MediaPart, ModelRequest, TextPart, UserTurn

ASK = ModelRequest("m", turns=(UserTurn((TextPart("hi"),)),), headers={"X-Session-Id": "ses_1"})
EVENTS = {"content-type": "text/event-stream"}
TEXT_FRAME = b'data: {"choices":[{"delta":{"content":"hi"}}]}\n\n'
DONE = b"data: [DONE]\n\n"


class Body(httpx.AsyncByteStream):
    """A body whose chunks may be errors."""

    def __init__(self, *parts: bytes | Exception) -> None:
        self._parts = parts
        self.closed = False

    @override
    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self._parts:
            if isinstance(part, Exception):
                raise part
            yield part

    @override
    async def aclose(self) -> None:
        self.closed = True


async def ask(
    answer: Callable[[httpx.Request], httpx.Response],
    request: ModelRequest = ASK,
    **endpoint: object,
) -> list[ProviderEvent]:
    fields = {"protocol": "openai-chat", "base_url": "http://provider", "api_key": "sk-secret"}
    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        target = ProviderEndpoint(**(fields | endpoint))  # type: ignore[arg-type]
        return [event async for event in stream(client, target, request)]


async def failure_of(
    answer: Callable[[httpx.Request], httpx.Response],
    request: ModelRequest = ASK,
    **endpoint: object,
) -> ProviderFailure:
    last = (await ask(answer, request, **endpoint))[-1]
    assert isinstance(last, ProviderFailure)
    return last


def refuse_to_send(_request: httpx.Request) -> httpx.Response:
    raise AssertionError("nothing may be sent")


async def test_the_request_carries_key_headers_and_body() -> None:
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(200, headers=EVENTS, stream=Body(TEXT_FRAME, DONE))

    events = await ask(answer, headers={"X-Extra": "1"})

    assert isinstance(events[-1], StepFinish)
    assert requests[0].headers["authorization"] == "Bearer sk-secret"
    assert (requests[0].headers["x-session-id"], requests[0].headers["x-extra"]) == ("ses_1", "1")
    assert orjson.loads(requests[0].content)["model"] == "m"


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("http://p", "http://p/v1/chat/completions"),
        ("http://p/", "http://p/v1/chat/completions"),
        ("http://p/v1", "http://p/v1/chat/completions"),
        ("http://p/openai/v1/", "http://p/openai/v1/chat/completions"),
        ("http://p/api/paas/v4", "http://p/api/paas/v4/chat/completions"),
        ("http://p/v1beta/openai", "http://p/v1beta/openai/chat/completions"),
        ("http://p/proxy", "http://p/proxy/v1/chat/completions"),
    ],
)
async def test_the_path_follows_the_base_url(base: str, url: str) -> None:
    requests: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(str(request.url))
        return httpx.Response(200, headers=EVENTS, stream=Body(DONE))

    await ask(answer, base_url=base)

    assert requests == [url]


async def test_a_refusal_is_one_failure_with_its_advice() -> None:
    headers = {"Retry-After": "3"}

    events = await ask(lambda _: httpx.Response(429, headers=headers, text="slow down"))

    assert events == [
        ProviderFailure(
            "rate-limit",
            "slow down",
            retryable=True,
            status=429,
            retry_after_s=3.0,
            body="slow down",
        )
    ]


async def test_a_key_that_the_provider_echoes_is_not_told() -> None:
    failure = await failure_of(lambda _: httpx.Response(401, text="bad key sk-secret"))

    assert "sk-secret" not in f"{failure}"


async def test_a_header_named_like_a_key_is_not_told_either() -> None:
    """Some deployments want their key in a header of another name."""
    own = ModelRequest("m", headers={"X-Team-Token": "tok-9"})
    echo = "refused api-key az-secret of sk-secret, team tok-9 in region eu"

    failure = await failure_of(
        lambda _: httpx.Response(401, text=echo),
        own,
        headers={"api-key": "az-secret", "x-region": "eu"},
    )

    assert (
        failure.message == "refused api-key [redacted] of [redacted], team [redacted] in region eu"
    )
    assert failure.body == failure.message


async def test_a_redirect_is_not_followed() -> None:
    failure = await failure_of(lambda _: httpx.Response(307, headers={"location": "http://x"}))

    assert failure.status == 307


async def test_another_content_type_is_a_malformed_stream() -> None:
    failure = await failure_of(lambda _: httpx.Response(200, json={"choices": []}))

    assert (failure.kind, failure.status, failure.in_stream) == ("malformed-stream", 200, False)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (httpx.ConnectError("refused"), "network"),
        (httpx.ConnectTimeout("late"), "timeout"),
        (httpx.PoolTimeout("late"), "timeout"),
        (httpx.ReadError("reset"), "network"),
        (httpx.LocalProtocolError("Illegal header value b'Bearer sk-secret'"), "invalid-request"),
    ],
)
async def test_a_request_that_gets_no_answer_is_a_failure(error: Exception, kind: str) -> None:
    def answer(_request: httpx.Request) -> httpx.Response:
        raise error

    failure = await failure_of(answer)

    assert (failure.kind, failure.in_stream) == (kind, False)
    assert "sk-secret" not in failure.message


async def test_a_broken_body_is_retryable_only_while_nothing_was_published() -> None:
    error = httpx.RemoteProtocolError("incomplete chunked read")

    early = await failure_of(
        lambda _: httpx.Response(200, headers=EVENTS, stream=Body(b": hi\n\n", error))
    )
    late = await failure_of(
        lambda _: httpx.Response(200, headers=EVENTS, stream=Body(TEXT_FRAME, error))
    )

    assert (early.kind, early.retryable) == ("network", True)
    assert (late.kind, late.retryable) == ("network", False)


async def test_frames_of_one_read_before_a_bad_frame_are_told() -> None:
    body = Body(TEXT_FRAME + b"data: {nope\n\n" + TEXT_FRAME)

    events = await ask(lambda _: httpx.Response(200, headers=EVENTS, stream=body))

    assert [type(event) for event in events[1:]] == [TextChunk, ProviderFailure]
    assert body.closed


async def test_an_unsendable_request_is_refused_without_sending() -> None:
    media = MediaPart("file:///a", "image/png")

    failure = await failure_of(refuse_to_send, ModelRequest("m", turns=(UserTurn((media,)),)))

    assert (failure.kind, failure.retryable) == ("invalid-request", False)


@pytest.mark.parametrize(
    "fields", [{"protocol": "carrier-pigeon"}, {"base_url": "http://[::"}, {"api_key": "clé"}]
)
async def test_an_endpoint_that_cannot_be_asked_is_a_failure(fields: dict[str, str]) -> None:
    assert (await failure_of(refuse_to_send, ASK, **fields)).kind == "invalid-request"


def test_an_endpoint_hides_its_secrets() -> None:
    endpoint = ProviderEndpoint("openai-chat", "http://p", "sk-secret", {"x-key": "sk-other"})

    assert "sk-" not in repr(endpoint)
