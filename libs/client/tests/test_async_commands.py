"""Commands against a gateway that breaks, refuses and recovers."""

from pathlib import Path

import pytest

from fairlead_client import (
    AsyncFairlead,
    MalformedAnswer,
    NotFairlead,
    ServerAway,
    TokenUnavailable,
    UnknownRefusal,
)
from fairlead_schema.errors import (
    Conflict,
    InternalFailure,
    InvalidRequest,
    LimitReached,
    MessageNotFound,
    Refused,
    ServiceUnavailable,
    SessionNotFound,
    SessionUnreadable,
    Unauthorized,
)
from libs.client.tests.conftest import ScriptedGateway, refuse, reply

PROMPT = "/api/session/ses_a/prompt"
RECEIPT = {
    "admittedSeq": 2,
    "id": "msg_1",
    "sessionID": "ses_a",
    "prompt": {"text": "Hi"},
    "delivery": "steer",
    "timeCreated": 1,
}
ADMITTED = reply({"data": RECEIPT})


async def test_a_prompt_is_repeated_under_one_id_until_there_is_a_receipt(
    gateway: ScriptedGateway,
) -> None:
    """A-14: no answer, a broken answer, a proxy and a busy server all mean the same prompt again."""
    gateway.script(
        PROMPT,
        b"",
        ADMITTED[: len(ADMITTED) // 2],
        refuse(ServiceUnavailable("No ingest service answers now", service="ingest")),
        refuse(InternalFailure("A defect", ref="err_1")),
        reply(b"<h1>Bad gateway</h1>", 502, mime="text/html"),
        ADMITTED,
    )
    async with AsyncFairlead(gateway.url, token="k") as fairlead:  # noqa: S106
        receipt = await fairlead.prompt("ses_a", "Hi")

    bodies = [asked.body for asked in gateway.asked_for(PROMPT)]
    assert receipt.admitted_seq == 2
    assert len(bodies) == 6
    assert all(body == bodies[0] for body in bodies)
    assert bodies[0]["id"].startswith("msg_")
    assert bodies[0]["id"].endswith("_"), "a seal would make it an id of another session"


async def test_an_export_waits_for_its_first_piece_and_never_begins_twice(
    gateway: ScriptedGateway,
) -> None:
    """Half of one file and half of another are none."""
    whole = reply(b"whole", mime="application/x-ndjson")
    away = refuse(ServiceUnavailable("NATS is away", service="nats"))
    gateway.script("/api/session/ses_a/export", b"", away, whole, whole[:-2])
    async with AsyncFairlead(gateway.url) as fairlead:
        assert [piece async for piece in fairlead.export("ses_a")] == [b"whole"]
        pieces = fairlead.export("ses_a")
        assert await anext(pieces) == b"who"
        with pytest.raises(ServerAway):
            await anext(pieces)

    assert len(gateway.asked) == 4


async def test_a_limit_is_waited_for_as_the_server_says(gateway: ScriptedGateway) -> None:
    gateway.script(PROMPT, refuse(LimitReached("Too many"), "retry-after: 0"), ADMITTED)
    async with AsyncFairlead(gateway.url) as fairlead:
        assert (await fairlead.prompt("ses_a", "Hi")).id == "msg_1"


@pytest.mark.parametrize(
    "refusal",
    [
        InvalidRequest("No such agent", kind="Body", field="agent"),
        SessionNotFound("ses_a"),
        Conflict("The id is in use", "msg_1"),
        SessionUnreadable(3, "a newer release wrote it"),
        LimitReached("Quota", kind="Quota", field="sessions"),
    ],
    ids=lambda refusal: type(refusal).__name__,
)
async def test_a_refusal_that_lasts_is_raised_as_its_class_at_once(
    gateway: ScriptedGateway, refusal: Refused
) -> None:
    gateway.script(PROMPT, refuse(refusal))
    async with AsyncFairlead(gateway.url) as fairlead:
        with pytest.raises(Refused) as raised:
            await fairlead.prompt("ses_a", "Hi")

    assert isinstance(refusal, type(raised.value))
    assert raised.value.body == refusal.body
    assert len(gateway.asked_for(PROMPT)) == 1


async def test_a_command_that_may_not_happen_twice_is_sent_once(gateway: ScriptedGateway) -> None:
    """A resume that was sent may have been served: nobody but its caller can decide to repeat it."""
    gateway.script("/api/session/ses_a/resume", b"")
    async with AsyncFairlead(gateway.url) as fairlead:
        with pytest.raises(ServerAway) as raised:
            await fairlead.resume("ses_a")

    assert raised.value.was_sent
    assert len(gateway.asked) == 1


@pytest.mark.parametrize(
    ("path", "gone"),
    [
        ("/api/session/ses_a", SessionNotFound("ses_a")),
        ("/api/session/ses_a/input/msg_1", MessageNotFound("ses_a", "msg_1")),
    ],
    ids=["erase", "cancel"],
)
async def test_what_is_gone_after_a_lost_answer_was_removed_by_the_first_try(
    gateway: ScriptedGateway, path: str, gone: Refused
) -> None:
    """A-14: but what the first try does not find never was there, and a busy server has done nothing."""
    async with AsyncFairlead(gateway.url) as fairlead:

        async def remove() -> None:
            await (
                fairlead.erase("ses_a")
                if "input" not in path
                else fairlead.cancel("ses_a", "msg_1")
            )

        gateway.script(path, b"", refuse(gone))
        await remove()
        for before in ([], [refuse(LimitReached("Too many"), "retry-after: 0")]):
            gateway.script(path, *before, refuse(gone))
            with pytest.raises(type(gone)):
                await remove()


async def test_a_server_that_stays_away_is_named_when_the_patience_is_over() -> None:
    async with AsyncFairlead("http://127.0.0.1:9", patience_s=0.3) as fairlead:
        with pytest.raises(ServerAway, match=r"http://127\.0\.0\.1:9 .*start it") as raised:
            await fairlead.prompt("ses_a", "Hi")

    assert not raised.value.was_sent


@pytest.mark.parametrize(
    "answer",
    [
        reply(b"<html>Welcome</html>", mime="text/html"),
        reply(b"<html>Not here</html>", 404, mime="text/html"),
        reply(b"", 302, "location: https://login.example/"),
    ],
)
async def test_a_wrong_address_is_told_from_a_refusal(
    gateway: ScriptedGateway, answer: bytes
) -> None:
    gateway.script(PROMPT, answer)
    async with AsyncFairlead(gateway.url) as fairlead:
        with pytest.raises(NotFairlead, match="correct the address"):
            await fairlead.prompt("ses_a", "Hi")


async def test_an_answer_in_broken_utf_8_is_a_typed_error(gateway: ScriptedGateway) -> None:
    gateway.script("/api/session/ses_a/explain", reply(b'{"data": {"reason": "\xff\xfe"}}'))
    async with AsyncFairlead(gateway.url) as fairlead:
        with pytest.raises(MalformedAnswer):
            await fairlead.explain("ses_a")


async def test_an_answer_that_a_proxy_has_broken_is_asked_for_again(
    gateway: ScriptedGateway,
) -> None:
    broken = reply(b"no gzip", 200, "content-encoding: gzip")
    gateway.script("/api/session/ses_a/explain", broken, reply({"data": {"code": "idle"}}))
    async with AsyncFairlead(gateway.url) as fairlead:
        assert (await fairlead.explain("ses_a"))["code"] == "idle"


async def test_an_answer_of_another_form_says_what_to_upgrade(gateway: ScriptedGateway) -> None:
    gateway.script("/api/session/ses_a", reply({"data": {"id": "ses_a"}}))
    async with AsyncFairlead(gateway.url) as fairlead:
        with pytest.raises(MalformedAnswer, match="of another release: upgrade"):
            await fairlead.get("ses_a")


async def test_a_session_id_is_checked_before_it_becomes_a_path(gateway: ScriptedGateway) -> None:
    async with AsyncFairlead(gateway.url) as fairlead:
        with pytest.raises(InvalidRequest):
            await fairlead.interrupt("ses_a/../../secret")

    assert gateway.asked == []


async def test_a_refused_token_is_read_again_once(gateway: ScriptedGateway, tmp_path: Path) -> None:
    """The file has another token by then, or the refusal stands."""
    file, expired = tmp_path / "token", refuse(Unauthorized("The credentials expired"))
    file.write_text("first\n")
    gateway.script(PROMPT, ADMITTED, expired, ADMITTED, expired)
    async with AsyncFairlead(gateway.url, token=file) as fairlead:
        await fairlead.prompt("ses_a", "Hi")
        file.write_text("second")
        await fairlead.prompt("ses_a", "Hi")
        with pytest.raises(Unauthorized):
            await fairlead.prompt("ses_a", "Hi")

    sent = [asked.headers["authorization"] for asked in gateway.asked]
    assert sent == [f"bearer {token}" for token in ("first", "first", "second", "second")]


async def test_a_function_may_fetch_the_token(gateway: ScriptedGateway) -> None:
    tokens = iter(["one", "two"])

    async def fetch() -> str:
        return next(tokens)

    gateway.script(PROMPT, refuse(Unauthorized()), ADMITTED)
    async with AsyncFairlead(gateway.url, token=fetch) as fairlead:
        await fairlead.prompt("ses_a", "Hi")

    assert [asked.headers["authorization"] for asked in gateway.asked] == [
        "bearer one",
        "bearer two",
    ]


async def test_a_file_without_a_token_is_named(tmp_path: Path) -> None:
    async with AsyncFairlead("http://127.0.0.1:9", token=tmp_path / "none") as fairlead:
        with pytest.raises(TokenUnavailable, match="none"):
            await fairlead.prompt("ses_a", "Hi")


async def test_a_refusal_of_a_newer_server_is_told_and_not_repeated(
    gateway: ScriptedGateway,
) -> None:
    body = {"_tag": "HologramError", "message": "The projector is dim"}
    gateway.script("/api/session/ses_a", reply(body, 422))
    async with AsyncFairlead(gateway.url) as fairlead:
        with pytest.raises(UnknownRefusal, match=r"is dim .*HologramError.*upgrade"):
            await fairlead.get("ses_a")

    assert len(gateway.asked) == 1


async def test_a_route_that_an_older_server_lacks_says_what_to_do(
    gateway: ScriptedGateway,
) -> None:
    gateway.script("/api/session/ses_a", reply(b"Not Found", 404, mime="text/plain"))
    async with AsyncFairlead(gateway.url) as fairlead:
        with pytest.raises(NotFairlead, match="upgrade a server that is older"):
            await fairlead.get("ses_a")


async def test_a_text_of_half_characters_is_refused_before_it_is_sent(
    gateway: ScriptedGateway,
) -> None:
    """As an argument of a shell or the name of a file may have them."""
    async with AsyncFairlead(gateway.url) as fairlead:
        with pytest.raises(InvalidRequest, match="half a character at position 3"):
            await fairlead.prompt("ses_a", "caf\udce9")
    assert gateway.asked == []


async def test_what_no_json_can_carry_is_refused_before_it_is_sent(
    gateway: ScriptedGateway,
) -> None:
    async with AsyncFairlead(gateway.url) as fairlead:
        with pytest.raises(InvalidRequest, match="cannot be sent"):
            await fairlead.prompt("ses_a", "Hi", system="caf\udce9")
        with pytest.raises(InvalidRequest, match="cannot be sent"):
            await fairlead.prompt("ses_a", "Hi", schema={"type": object()})
        with pytest.raises(InvalidRequest, match="half a character"):
            await fairlead.sessions(search="caf\udce9")
    assert gateway.asked == []


@pytest.mark.parametrize("pause", ["\xb2", "9" * 400, "-1", "soon"])
async def test_a_strange_wish_for_a_pause_does_no_harm(
    gateway: ScriptedGateway, pause: str
) -> None:
    busy = refuse(LimitReached("Too many"), f"retry-after: {pause}").replace(
        "\xb2".encode(), b"\xb2"
    )
    gateway.script(PROMPT, busy)
    async with AsyncFairlead(gateway.url, patience_s=0.0) as fairlead:
        with pytest.raises(LimitReached):
            await fairlead.prompt("ses_a", "Hi")
