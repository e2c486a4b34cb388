"""Where the server is and who asks: what cannot be used is said at once, and no error shows a secret."""

import asyncio
from pathlib import Path

import pytest

from fairlead_client import (
    AddressInvalid,
    AsyncFairlead,
    ClientError,
    TokenUnavailable,
)
from fairlead_schema.errors import Unauthorized
from libs.client.tests.conftest import ScriptedGateway, refuse, reply
from libs.client.tests.test_async_commands import ADMITTED, PROMPT


@pytest.mark.parametrize(
    "token", ["flk_secret\nsecond", "flk_sécret", "flk secret", "flk_\x7fsecret"]
)
async def test_a_token_that_no_request_can_carry_is_refused_without_showing_it(
    gateway: ScriptedGateway, token: str
) -> None:
    gateway.script(PROMPT, ADMITTED)
    async with AsyncFairlead(gateway.url, token=token) as fairlead:
        with pytest.raises(TokenUnavailable, match="copy it again") as caught:
            await fairlead.prompt("ses_a", "Hi")

    assert "secret" not in str(caught.value)
    assert gateway.asked == []


async def test_the_end_of_a_line_is_no_part_of_a_token(gateway: ScriptedGateway) -> None:
    gateway.script(PROMPT, ADMITTED)
    async with AsyncFairlead(gateway.url, token=" flk_a\n") as fairlead:  # noqa: S106
        await fairlead.prompt("ses_a", "Hi")

    assert [asked.headers["authorization"] for asked in gateway.asked] == ["bearer flk_a"]


@pytest.mark.parametrize(
    "url",
    [
        "ftp://127.0.0.1",
        "127.0.0.1:8420",
        "http://",
        "http://[::1",
        "http://127.0.0.1:99999",
        "http://127.0.0.1:x",
        "http://127.0.0.1/\x00",
        "http://127.0.0.1/?a=b",
    ],
)
def test_an_address_that_is_none_is_refused_before_anything_is_sent(url: str) -> None:
    with pytest.raises(AddressInvalid, match="http://host:port"):
        AsyncFairlead(url)


async def test_no_error_shows_the_password_of_an_address(gateway: ScriptedGateway) -> None:
    gateway.script(PROMPT, reply(b"<h1>Hello</h1>", mime="text/html"))
    with_password = gateway.url.replace("http://", "http://opencode:hidden@")
    for url in (with_password, "http://opencode:hidden@127.0.0.1:1"):
        async with AsyncFairlead(url, patience_s=0.0) as fairlead:
            with pytest.raises(ClientError) as caught:
                await fairlead.prompt("ses_a", "Hi")
        assert "hidden" not in str(caught.value)
    with pytest.raises(AddressInvalid) as refused:
        AsyncFairlead("ftp://opencode:hidden@127.0.0.1")
    assert "hidden" not in str(refused.value)


async def test_an_export_with_a_token_that_expired_reads_the_token_again(
    gateway: ScriptedGateway, tmp_path: Path
) -> None:
    file, path = tmp_path / "token", "/api/session/ses_a/export"
    file.write_text("first")
    expired = refuse(Unauthorized("The credentials expired"))
    gateway.script("/api/session/ses_a", expired)
    gateway.script(path, expired, reply(b"whole", mime="application/x-ndjson"), expired)
    async with AsyncFairlead(gateway.url, token=file) as fairlead:
        with pytest.raises(Unauthorized):
            await fairlead.get("ses_a")
        # The token in use is the refused one, and the file has another one by now.
        file.write_text("second")
        pieces = [piece async for piece in fairlead.export("ses_a")]
        with pytest.raises(Unauthorized):
            _ = [piece async for piece in fairlead.export("ses_a")]

    assert b"".join(pieces) == b"whole"
    sent = [asked.headers["authorization"] for asked in gateway.asked_for(path)]
    assert sent == ["bearer first", "bearer second", "bearer second"]


async def test_requests_that_are_refused_together_use_the_token_that_one_of_them_read(
    gateway: ScriptedGateway, tmp_path: Path
) -> None:
    """A service asks for many sessions at once when its token expires."""
    file, expired = tmp_path / "token", refuse(Unauthorized("The credentials expired"))
    file.write_text("first")
    gateway.script(PROMPT, ADMITTED, *[expired] * 5, ADMITTED)
    async with AsyncFairlead(gateway.url, token=file) as fairlead:
        await fairlead.prompt("ses_a", "Hi")
        file.write_text("second")
        receipts = await asyncio.gather(*(fairlead.prompt("ses_a", "Hi") for _ in range(5)))

    assert len(receipts) == 5
    sent = [asked.headers["authorization"] for asked in gateway.asked]
    assert sent == ["bearer first"] * 6 + ["bearer second"] * 5
