"""A client that followed a session before the restore, and comes back with its cursor."""

from dataclasses import dataclass

import httpx

from tests.rehearsal.deployment import Deployment

EXPIRED = "CursorExpiredError"


@dataclass(frozen=True)
class Cursor:
    """How far a client has read a session, in which incarnation of the log."""

    session: str
    after: str
    log: str


async def read_cursor(deployment: Deployment, session: str) -> Cursor:
    """Follow a session up to its first event."""
    path = f"{deployment.url}/api/session/{session}/event"
    async with (
        httpx.AsyncClient(headers=deployment.headers, trust_env=False, timeout=30) as http,
        http.stream("GET", path) as answer,
    ):
        answer.raise_for_status()
        async for line in answer.aiter_lines():
            if line.startswith("id:"):
                return Cursor(
                    session, line.removeprefix("id:").strip(), answer.headers["fairlead-log"]
                )
    raise AssertionError(f"the stream of {session} ended")


async def use_cursor(deployment: Deployment, cursor: Cursor) -> str:
    """Follow on where the client was. The restored log has to refuse it."""
    path = f"{deployment.url}/api/session/{cursor.session}/event"
    query = {"after": cursor.after, "log": cursor.log}
    async with httpx.AsyncClient(headers=deployment.headers, trust_env=False, timeout=30) as http:
        answer = (await http.get(path, params=query)).json()
    assert answer.get("_tag") == EXPIRED, f"a cursor of the old log was taken: {answer}"
    return f"{EXPIRED}: {answer['message']}"
