"""Anthropic and Gemini over the HTTP function: the URLs of requests, and refusals."""

from collections.abc import Callable

import httpx
import orjson
import pytest

from fairlead_llm.endpoint import ProviderEndpoint
from fairlead_llm.http import stream
from fairlead_schema.provider.events import ProviderEvent, ProviderFailure, StepFinish, TextChunk
from fairlead_schema.provider.request import ModelRequest, TextPart, UserTurn

EVENTS = {"content-type": "text/event-stream"}
ASK = ModelRequest(
    "m-1", turns=(UserTurn((TextPart("hi"),)),), headers={"anthropic-beta": "one,two"}
)


def frames(*events: object) -> bytes:
    return b"".join(b"data: " + orjson.dumps(event) + b"\n\n" for event in events)


HELLO = {
    "anthropic-messages": frames(
        {"type": "message_start", "message": {"id": "a"}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ),
    "gemini": frames(
        {"candidates": [{"content": {"parts": [{"text": "hi"}]}}]},
        {"candidates": [{"finishReason": "STOP"}]},
    ),
}


async def ask(
    protocol: str,
    answer: Callable[[httpx.Request], httpx.Response],
    base: str = "https://provider",
) -> list[ProviderEvent]:
    endpoint = ProviderEndpoint(protocol, base, "sk-secret")
    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        return [event async for event in stream(client, endpoint, ASK)]


@pytest.mark.parametrize(
    ("protocol", "base", "url"),
    [
        ("anthropic-messages", "https://p", "https://p/v1/messages"),
        ("anthropic-messages", "https://p/v1/", "https://p/v1/messages"),
        ("gemini", "https://p", "https://p/v1beta/models/m-1:streamGenerateContent?alt=sse"),
        ("gemini", "https://p/v1beta", "https://p/v1beta/models/m-1:streamGenerateContent?alt=sse"),
        (
            "gemini",
            "https://p/v1/projects/x/publishers/google",
            "https://p/v1/projects/x/publishers/google/models/m-1:streamGenerateContent?alt=sse",
        ),
    ],
)
async def test_the_path_follows_the_base_url(protocol: str, base: str, url: str) -> None:
    requests: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(str(request.url))
        return httpx.Response(200, headers=EVENTS, content=HELLO[protocol])

    events = await ask(protocol, answer, base)

    assert requests == [url]
    assert [event.text for event in events if isinstance(event, TextChunk)] == ["hi"]
    assert isinstance(events[-1], StepFinish)


@pytest.mark.parametrize(
    ("protocol", "key"), [("anthropic-messages", "x-api-key"), ("gemini", "x-goog-api-key")]
)
async def test_the_key_is_a_header_and_betas_are_the_requests_own(protocol: str, key: str) -> None:
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(200, headers=EVENTS, content=HELLO[protocol])

    await ask(protocol, answer)

    assert requests[0].headers[key] == "sk-secret"
    assert requests[0].headers["anthropic-beta"] == "one,two"
    assert b"sk-secret" not in requests[0].content
    assert "sk-secret" not in str(requests[0].url)


@pytest.mark.parametrize("protocol", HELLO)
@pytest.mark.parametrize(
    ("status", "kind"), [(200, "malformed-stream"), (502, "server-error"), (529, "overloaded")]
)
async def test_a_page_instead_of_a_stream_is_a_classified_failure(
    protocol: str, status: int, kind: str
) -> None:
    page = "<html><body>Bad gateway</body></html>"

    events = await ask(protocol, lambda _: httpx.Response(status, html=page))

    assert len(events) == 1
    assert isinstance(events[0], ProviderFailure)
    assert (events[0].kind, events[0].status) == (kind, status)


@pytest.mark.parametrize("protocol", HELLO)
async def test_a_cut_stream_keeps_what_was_said_and_is_not_to_be_retried(protocol: str) -> None:
    cut = HELLO[protocol][:-20]

    events = await ask(protocol, lambda _: httpx.Response(200, headers=EVENTS, content=cut))

    assert any(isinstance(event, TextChunk) for event in events)
    last = events[-1]
    assert isinstance(last, ProviderFailure)
    assert (last.kind, last.retryable) == ("stream-truncated", False)


@pytest.mark.parametrize(
    ("status", "type_", "kind", "retryable"),
    [
        (400, "invalid_request_error", "invalid-request", False),
        (401, "authentication_error", "auth", False),
        (402, "billing_error", "rate-limit", False),
        (403, "permission_error", "auth", False),
        (404, "not_found_error", "invalid-request", False),
        (413, "request_too_large", "context-overflow", False),
        (429, "rate_limit_error", "rate-limit", True),
        (500, "api_error", "server-error", True),
        (504, "timeout_error", "timeout", True),
        (529, "overloaded_error", "overloaded", True),
    ],
)
async def test_each_refusal_of_anthropic_is_classified(
    status: int, type_: str, kind: str, *, retryable: bool
) -> None:
    body = {"type": "error", "error": {"type": type_, "message": "No."}, "request_id": "req_1"}

    events = await ask("anthropic-messages", lambda _: httpx.Response(status, json=body))

    assert isinstance(events[0], ProviderFailure)
    assert (events[0].kind, events[0].retryable, events[0].message) == (kind, retryable, "No.")
