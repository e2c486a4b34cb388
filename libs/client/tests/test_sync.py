"""The synchronous client: the same code without waiting, and it works."""

import asyncio
from pathlib import Path

import pytest

from fairlead_client import AsyncFairlead, Fairlead, ServerAway, TokenUnavailable
from fairlead_schema.errors import SessionNotFound, Unauthorized
from libs.client.tests.conftest import ScriptedGateway, event, failure, refuse, reply, stream
from libs.client.tests.generate_sync import BY_HAND, PACKAGE, generate

STREAM = "/api/session/ses_a/stream"


def test_the_synchronous_client_is_what_the_asynchronous_one_generates() -> None:
    """Both are equal by construction: `make client` writes the one from the other."""
    written = {
        path.name: path.read_text()
        for path in (PACKAGE / "sync_client").glob("*.py")
        if path.name not in BY_HAND
    }

    assert written == generate()


def test_both_sides_offer_the_same_methods() -> None:
    renamed = {"aclose": "close", "__aenter__": "__enter__", "__aexit__": "__exit__"}
    names = {renamed.get(name, name) for name in dir(AsyncFairlead)}

    assert names == set(dir(Fairlead))


async def test_a_prompt_is_repeated_under_one_id(gateway: ScriptedGateway) -> None:
    """A-14: the same as the asynchronous client does."""
    receipt = {"admittedSeq": 2, "id": "msg_1", "sessionID": "ses_a", "prompt": {"text": "Hi"}}
    admitted = reply({"data": {**receipt, "delivery": "steer", "timeCreated": 1}})
    gateway.script("/api/session/ses_a/prompt", b"", admitted)

    def prompt() -> int:
        with Fairlead(gateway.url) as fairlead:
            return fairlead.prompt("ses_a", "Hi").admitted_seq

    assert await asyncio.to_thread(prompt) == 2
    first, second = gateway.asked
    assert first.body == second.body


async def test_a_stream_goes_on_with_a_new_token_until_the_session_is_gone(
    gateway: ScriptedGateway, tmp_path: Path
) -> None:
    """H-30: no gap and no double."""
    file = tmp_path / "token"
    file.write_text("first")
    gateway.script(
        STREAM,
        stream(event(1), event(2), failure(Unauthorized("The credentials expired"))),
        stream(event(2), event(5)),
        refuse(SessionNotFound("ses_a")),
    )

    def follow() -> list[int | None]:
        taken: list[int | None] = []
        with Fairlead(gateway.url, token=file) as fairlead:
            try:
                for received in fairlead.follow("ses_a"):
                    taken.append(received.seq)
                    file.write_text("second")
            except SessionNotFound:
                taken.append(None)
        return taken

    assert await asyncio.to_thread(follow) == [1, 2, 5, None]


def test_a_token_that_needs_waiting_is_refused() -> None:
    async def fetch() -> str:
        return "k"

    fairlead = Fairlead("http://127.0.0.1:9", token=fetch, patience_s=0.0)
    with fairlead, pytest.raises(TokenUnavailable, match="AsyncFairlead"):
        fairlead.prompt("ses_a", "Hi")


def test_a_server_that_is_away_is_named() -> None:
    with Fairlead("http://127.0.0.1:9", patience_s=0.1) as fairlead, pytest.raises(ServerAway):
        fairlead.create()
