"""Careful callers: they ask again, exactly the same, until they hold an answer."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from typing import Any, Final

import httpx
import orjson

from fairlead_eventlog.errors import LogError
from fairlead_testing.stack import Stack

# A service that is killed again and again is started ever later.
TIMEOUT_S: Final = 120.0
AGAIN_S: Final = 0.1


async def until_answered(
    up: Stack,
    verb: str,
    body: dict[str, Any],
    *,
    over_http: bool = False,
    final: Collection[str] = (),
) -> dict[str, Any]:
    """Ask again until somebody answers with data, or with an error that is final."""
    begun, last = time.monotonic(), "nothing"
    while time.monotonic() < begun + TIMEOUT_S:
        try:
            answer = await (_post(up, body) if over_http else up.ask(verb, body))
            if "data" in answer or answer["error"].get("_tag") in final:
                return answer
            assert _is_temporary(answer["error"]), answer
            last = str(answer)
        except (LogError, TimeoutError, httpx.HTTPError, orjson.JSONDecodeError) as error:
            last = repr(error)
        await asyncio.sleep(AGAIN_S)
    raise AssertionError(f"{verb} of {body.get('sessionID')} has no answer, at last {last}")


async def until_stored(store: Callable[[], Awaitable[None]]) -> None:
    """Publish again until the server has acknowledged it."""
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            with suppress(LogError):
                await store()
                return
            await asyncio.sleep(AGAIN_S)


async def _post(up: Stack, body: dict[str, Any]) -> dict[str, Any]:
    rest = {key: value for key, value in body.items() if key != "sessionID"}
    response = await up.http.post(f"/api/session/{body['sessionID']}/prompt", json=rest)
    answer: dict[str, Any] = orjson.loads(response.content)
    return answer if response.is_success else {"error": answer}


def _is_temporary(error: dict[str, Any]) -> bool:
    """Whether the same request may succeed later."""
    return error.get("_tag") == "ServiceUnavailableError"
