"""The route of each verb over HTTP. A key of the body that its path names goes into the path."""

from typing import Any, Final, NamedTuple
from urllib.parse import quote

_SESSION: Final = "/api/session/{sessionID}"


class Route(NamedTuple):
    """One operation of the gateway."""

    method: str
    path: str


ROUTES: Final = {
    "session.create": Route("POST", "/api/session"),
    "session.get": Route("GET", _SESSION),
    "session.explain": Route("GET", f"{_SESSION}/explain"),
    "session.prompt": Route("POST", f"{_SESSION}/prompt"),
    "session.interrupt": Route("POST", f"{_SESSION}/interrupt"),
    "session.resume": Route("POST", f"{_SESSION}/resume"),
    "session.compact": Route("POST", f"{_SESSION}/compact"),
    "session.agent": Route("POST", f"{_SESSION}/agent"),
    "session.model": Route("POST", f"{_SESSION}/model"),
    "session.describe": Route("PATCH", _SESSION),
    "session.delete": Route("DELETE", f"{_SESSION}?purge=true"),
    "session.pending": Route("GET", f"{_SESSION}/input"),
    "session.cancel": Route("DELETE", _SESSION + "/input/{messageID}"),
    "session.shell": Route("POST", f"{_SESSION}/shell"),
    "revert.stage": Route("POST", f"{_SESSION}/revert/stage"),
    "revert.clear": Route("POST", f"{_SESSION}/revert/clear"),
    "permission.list": Route("GET", f"{_SESSION}/permission"),
    "permission.reply": Route("POST", _SESSION + "/permission/{requestID}/reply"),
    "question.list": Route("GET", f"{_SESSION}/question"),
    "question.reply": Route("POST", _SESSION + "/question/{requestID}/reply"),
    "question.reject": Route("POST", _SESSION + "/question/{requestID}/reject"),
}


def route_of(verb: str, body: dict[str, Any]) -> tuple[Route, dict[str, Any]]:
    """The route of a command with its path filled in, and what is left for the body."""
    route = ROUTES[verb]
    inside = {key for key in body if f"{{{key}}}" in route.path}
    path = route.path.format(
        **{key: quote(str(body[key]), safe="", errors="replace") for key in inside}
    )
    return Route(route.method, path), {key: body[key] for key in body.keys() - inside}
