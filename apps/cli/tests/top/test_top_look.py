"""What `fairlead top` reads again, and what it still knows from the look before."""

from typing import Any

from apps.cli.tests.answering_server import AnsweringServer
from apps.cli.tests.top.test_top_figures import info
from fairlead_cli.top.look import SessionObserver
from fairlead_client import AsyncFairlead

SESSION = "ses_0001"
USAGE: dict[str, Any] = {"tenant": "default", "quotas": [], "cost": 0, "tokens": 0}


def serve(server: AnsweringServer, status: str, state: str, *, updated: int = 1) -> None:
    """One session: its state in the list, and the state that its log explains."""
    shown = {**info(SESSION, updated).wire(), "status": {"state": status, "code": status}}
    for path in ("/api/session", "/api/session/overview"):
        server.answer_at(path, {"data": [shown], "cursor": {}})
    server.answer_at("/api/tenant/usage", {"data": USAGE})
    explanation = {"state": state, "code": state, "reason": f"It is {state}."}
    server.answer_at(f"/api/session/{SESSION}/explain", {"data": explanation})
    server.answer({"data": []})


async def states(observer: SessionObserver) -> list[str]:
    return [row.state for row in (await observer.look()).rows]


async def test_an_idle_session_that_begins_to_work_is_shown_at_work(
    server: AnsweringServer,
) -> None:
    """A prompt does not change when a session was updated: the end of its first step does."""
    async with AsyncFairlead(server.url, patience_s=0) as client:
        observer = SessionObserver(client, 50)
        serve(server, "idle", "idle")
        assert await states(observer) == ["idle"]

        serve(server, "running", "running")
        assert await states(observer) == ["running"]

        serve(server, "failed", "resting")
        assert await states(observer) == ["resting"]


async def test_a_look_that_is_ahead_of_the_list_does_not_stay(server: AnsweringServer) -> None:
    """The explanation comes from the log, and the list may be a moment behind it."""
    async with AsyncFairlead(server.url, patience_s=0) as client:
        observer = SessionObserver(client, 50)
        serve(server, "idle", "running")
        assert await states(observer) == ["running"]
        serve(server, "running", "idle")
        assert await states(observer) == ["idle"]

        serve(server, "idle", "running")
        assert await states(observer) == ["running"]


async def test_a_session_that_stays_idle_is_not_explained_again(server: AnsweringServer) -> None:
    async with AsyncFairlead(server.url, patience_s=0) as client:
        observer = SessionObserver(client, 50)
        serve(server, "idle", "idle")
        await states(observer)

        serve(server, "idle", "unread")
        assert await states(observer) == ["idle"]

        serve(server, "idle", "read", updated=2)
        assert await states(observer) == ["read"]
