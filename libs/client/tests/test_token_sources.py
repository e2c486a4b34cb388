"""Functions that fetch tokens: slow ones, and those that fail or give something else."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing

import pytest

from fairlead_client import AsyncFairlead, Fairlead, TokenUnavailable
from fairlead_schema.errors import Unauthorized
from libs.client.tests.conftest import ScriptedGateway, event, failure, refuse, stream
from libs.client.tests.test_async_commands import ADMITTED, PROMPT
from libs.client.tests.test_async_streams import STREAM

EXPIRED = Unauthorized("The credentials expired")


def fail() -> str:
    raise ConnectionError("the identity provider is away")


async def fail_later() -> str:
    await asyncio.sleep(0)
    return fail()


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (fail, "function fail: ConnectionError: the identity provider is away"),
        (fail_later, "function fail_later: ConnectionError"),
        (lambda: None, "it gave a NoneType"),
        (lambda: b"flk_secret", "it gave a bytes"),
        (lambda: " \n", "it gave an empty text"),
        (lambda: "flk_se cret", "copy it again"),
    ],
)
async def test_a_function_that_gives_no_token_is_named(
    gateway: ScriptedGateway, source: Callable[[], str], reason: str
) -> None:
    async with AsyncFairlead(gateway.url, token=source) as fairlead:
        with pytest.raises(TokenUnavailable, match=reason) as raised:
            await fairlead.prompt("ses_a", "Hi")

    assert "cret" not in str(raised.value)
    assert gateway.asked == []


async def test_a_function_that_fails_for_a_moment_does_not_end_a_stream(
    gateway: ScriptedGateway,
) -> None:
    tokens = iter(["first", None, None, "second"])

    def fetch() -> str:
        return next(tokens) or fail()

    gateway.script(STREAM, stream(event(1), failure(EXPIRED)), stream(event(2)), b"")
    async with (
        AsyncFairlead(gateway.url, token=fetch) as fairlead,
        aclosing(fairlead.follow("ses_a")) as events,
    ):
        assert [(await anext(events)).seq for _ in range(2)] == [1, 2]

    assert gateway.asked[-1].headers["authorization"] == "bearer second"


async def test_a_function_that_fails_for_long_ends_a_stream_when_the_patience_is_over(
    gateway: ScriptedGateway,
) -> None:
    tokens = iter(["first"])

    def fetch() -> str:
        return next(tokens, "") or fail()

    gateway.script(STREAM, stream(event(1), failure(EXPIRED)))
    async with AsyncFairlead(gateway.url, token=fetch, patience_s=0.2) as fairlead:
        events = fairlead.follow("ses_a")
        assert (await anext(events)).seq == 1
        with pytest.raises(TokenUnavailable, match="identity provider"):
            await anext(events)


async def test_requests_at_once_wait_for_one_slow_function(gateway: ScriptedGateway) -> None:
    """At the start, and again when the token that they share has expired."""
    fetched = 0

    async def fetch() -> str:
        nonlocal fetched
        fetched += 1
        await asyncio.sleep(0.05)
        return f"token{fetched}"

    gateway.script(PROMPT, *[ADMITTED] * 5, *[refuse(EXPIRED)] * 5, ADMITTED)
    async with AsyncFairlead(gateway.url, token=fetch) as fairlead:
        for _ in range(2):
            await asyncio.gather(*(fairlead.prompt("ses_a", "Hi") for _ in range(5)))

    assert fetched == 2
    sent = [asked.headers["authorization"] for asked in gateway.asked]
    assert sent == ["bearer token1"] * 10 + ["bearer token2"] * 5


async def test_threads_at_once_wait_for_one_slow_function(gateway: ScriptedGateway) -> None:
    fetched: list[str] = []

    def fetch() -> str:
        fetched.append("token")
        asyncio.run(asyncio.sleep(0.05))
        return "token"

    gateway.script(PROMPT, ADMITTED)
    with Fairlead(gateway.url, token=fetch) as fairlead:
        prompts = (asyncio.to_thread(fairlead.prompt, "ses_a", "Hi") for _ in range(5))
        await asyncio.gather(*prompts)

    assert fetched == ["token"]
