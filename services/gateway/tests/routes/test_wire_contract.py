"""Every route of the wire contract is an operation: those that existing clients know, and those beside them."""

import pytest

from fairlead_gateway.routes import OPERATIONS

SESSION = "/api/session/{sessionID}"
KNOWN_TO_CLIENTS = [
    *("GET /api/health", "GET /api/location", "GET /api/agent", "GET /api/model", "GET /api/skill"),
    *("GET /api/session", "POST /api/session", "GET /api/session/active", f"GET {SESSION}"),
    *(f"POST {SESSION}/agent", f"POST {SESSION}/model", f"POST {SESSION}/prompt"),
    *(f"POST {SESSION}/compact", f"POST {SESSION}/wait", f"POST {SESSION}/interrupt"),
    *(f"POST {SESSION}/revert/{act}" for act in ("stage", "clear", "commit")),
    *(f"GET {SESSION}/{part}" for part in ("context", "history", "event", "message")),
    f"GET {SESSION}/message/{{messageID}}",
    *("GET /api/permission/request", "GET /api/permission/saved"),
    "DELETE /api/permission/saved/{id}",
    *(f"POST {SESSION}/permission", f"GET {SESSION}/permission"),
    *(f"GET {SESSION}/permission/{{requestID}}", f"POST {SESSION}/permission/{{requestID}}/reply"),
    *("GET /api/question/request", f"GET {SESSION}/question"),
    *(f"POST {SESSION}/question/{{requestID}}/{act}" for act in ("reply", "reject")),
    "GET /api/event",
]
BESIDE_THEM = [
    *(f"GET {SESSION}/input", f"DELETE {SESSION}/input/{{messageID}}"),
    *(f"PATCH {SESSION}/input/{{messageID}}", f"POST {SESSION}/resume", f"POST {SESSION}/move"),
    *(f"DELETE {SESSION}", f"GET {SESSION}/todo", f"GET {SESSION}/explain"),
    *(f"GET {SESSION}/epoch", f"GET {SESSION}/stream", "GET /api/tool-output/{outputID}"),
]


@pytest.mark.parametrize("route", [*KNOWN_TO_CLIENTS, *BESIDE_THEM])
def test_every_route_of_the_contract_is_served(route: str) -> None:
    assert route in {f"{operation.method} {operation.path}" for operation in OPERATIONS}
