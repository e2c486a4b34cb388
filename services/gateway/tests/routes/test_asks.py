"""Permissions, questions and approvals over HTTP: the paths, the bodies, the refusals."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from fairlead_schema.errors import PermissionNotFound, QuestionNotFound, Refused
from fairlead_schema.events import PermissionAsked, QuestionAsked
from fairlead_schema.location import project_id
from fairlead_schema.permission import PermissionRequest, QuestionRequest
from fairlead_testing.read_model import MemoryReadModel, SessionRows
from services.gateway.tests.conftest import Append, FakeIngest

AT = "/api/session/ses_1"
REACHED = {"data": {"sessionID": "ses_1", "seq": 3}}


def request(id_: str = "per_1", session: str = "ses_1") -> PermissionRequest:
    return PermissionRequest(id=id_, session_id=session, action="bash", resources=("ls",))


def question(id_: str = "que_1", session: str = "ses_1") -> QuestionRequest:
    return QuestionRequest(id=id_, session_id=session, questions=())


@pytest.mark.parametrize(
    ("path", "body", "verb", "fields"),
    [
        (
            "/permission/per_1/reply",
            {"reply": "once"},
            "permission.reply",
            {"requestID": "per_1", "reply": "once"},
        ),
        (
            "/permission/per_1/reply",
            {"reply": "reject", "message": "no", "unknown": 1},
            "permission.reply",
            {"requestID": "per_1", "reply": "reject", "message": "no"},
        ),
        (
            "/question/que_1/reply",
            {"answers": [["a", "b"], []]},
            "question.reply",
            {"requestID": "que_1", "answers": [["a", "b"], []]},
        ),
        ("/question/que_1/reject", None, "question.reject", {"requestID": "que_1"}),
    ],
)
async def test_an_answer_goes_to_ingest_and_has_nothing_to_tell(
    client: httpx.AsyncClient,
    ingest: FakeIngest,
    path: str,
    body: dict[str, Any] | None,
    verb: str,
    fields: dict[str, Any],
) -> None:
    """K-15, N-24."""
    ingest.serve(verb, REACHED)

    answer = await client.post(AT + path, json=body)

    assert (answer.status_code, answer.content) == (204, b"")
    assert ingest.commands == [{"sessionID": "ses_1", **fields}]


@pytest.mark.parametrize(
    ("path", "body", "verb", "refusal"),
    [
        (
            "/permission/per_9/reply",
            {"reply": "once"},
            "permission.reply",
            PermissionNotFound("per_9"),
        ),
        ("/question/que_9/reply", {"answers": []}, "question.reply", QuestionNotFound("que_9")),
        ("/question/que_9/reject", None, "question.reject", QuestionNotFound("que_9")),
    ],
)
async def test_what_does_not_wait_here_is_not_found(
    client: httpx.AsyncClient,
    ingest: FakeIngest,
    path: str,
    body: dict[str, Any] | None,
    verb: str,
    refusal: Refused,
) -> None:
    """K-24, K-34, N-25: with the id and the fixed words."""
    ingest.serve(verb, {"error": refusal.body.wire()})

    answer = await client.post(AT + path, json=body)

    assert answer.status_code == 404
    assert answer.json() == refusal.body.wire()
    assert answer.json()["message"].endswith(f"request not found: {answer.json()['requestID']}")


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/permission/per_1/reply", {"reply": "maybe"}, "reply"),
        ("/permission/per_1/reply", {}, "reply"),
        ("/permission/per_1/reply", {"reply": "once", "message": None}, "message"),
        ("/permission/x_1/reply", {"reply": "once"}, "requestID"),
        ("/question/que_1/reply", {"answers": "red"}, "answers"),
        ("/question/per_1/reply", {"answers": []}, "requestID"),
        ("/permission", {"action": "bash", "resources": []}, "resources"),
        ("/permission", {"resources": ["x"]}, "action"),
    ],
)
async def test_what_does_not_fit_is_refused_with_its_field(
    client: httpx.AsyncClient, append: Append, path: str, body: dict[str, Any], field: str
) -> None:
    await append("ses_1")

    answer = await client.post(AT + path, json=body)

    assert (answer.status_code, answer.json()["_tag"]) == (400, "InvalidRequestError")
    assert answer.json()["field"] == field


async def test_a_sessions_list_holds_its_own_and_its_childrens(
    client: httpx.AsyncClient,
    append: Append,
    project: Callable[..., SessionRows],
) -> None:
    """K-34: its own are read from the log, before anything is projected."""
    await append(
        "ses_1",
        PermissionAsked(request=request(), agent="build"),
        QuestionAsked(request=question()),
    )
    await append("ses_other", PermissionAsked(request=request("per_o", "ses_other"), agent="build"))
    child = project("ses_2", parent_id="ses_1")
    child.asks["permission"] = [request("per_2", "ses_2").wire()]
    grandchild = project("ses_3", parent_id="ses_2")
    grandchild.asks["question"] = [question("que_3", "ses_3").wire()]

    permissions = (await client.get(f"{AT}/permission")).json()["data"]
    questions = (await client.get(f"{AT}/question")).json()["data"]

    assert [(ask["id"], ask["sessionID"]) for ask in permissions] == [
        ("per_1", "ses_1"),
        ("per_2", "ses_2"),
    ]
    assert [(ask["id"], ask["sessionID"]) for ask in questions] == [
        ("que_1", "ses_1"),
        ("que_3", "ses_3"),
    ]
    unknown = await client.get("/api/session/ses_9/permission")
    assert unknown.json()["_tag"] == "SessionNotFoundError"


async def test_a_list_over_all_sessions_may_be_of_one_directory(
    client: httpx.AsyncClient, project: Callable[..., SessionRows]
) -> None:
    """K-14, N-26: with the location that was selected."""
    here = project("ses_1")
    here.asks["permission"] = [request().wire()]
    here.asks["question"] = [question().wire()]

    everywhere = (await client.get("/api/permission/request")).json()
    elsewhere = (
        await client.get("/api/permission/request", headers={"x-opencode-directory": "/else"})
    ).json()
    questions = (await client.get("/api/question/request?location[directory]=/work")).json()

    assert [ask["id"] for ask in everywhere["data"]] == ["per_1"]
    assert everywhere["location"]["directory"] == "/srv/default"
    assert (elsewhere["location"]["directory"], elsewhere["data"]) == ("/else", [])
    assert [ask["id"] for ask in questions["data"]] == ["que_1"]


async def test_lists_say_when_the_read_models_are_away(
    client: httpx.AsyncClient, append: Append, read: MemoryReadModel
) -> None:
    """An incomplete list would be a wrong one."""
    await append("ses_1")
    read.unavailable = "gone"

    for path in ("/api/permission/request", "/api/question/request", f"{AT}/permission"):
        assert (await client.get(path)).status_code == 503


async def test_one_request_is_read_and_a_new_one_is_judged(
    client: httpx.AsyncClient, ingest: FakeIngest
) -> None:
    """K-12, K-34: both by ingest, from the log."""
    ingest.serve("permission.get", {"data": request().wire()})
    ingest.serve("permission.ask", {"data": {"id": "per_1", "effect": "ask"}})

    answer = await client.get(f"{AT}/permission/per_1")
    decision = await client.post(
        f"{AT}/permission", json={"action": "bash", "resources": ["ls"], "agent": "plan"}
    )

    assert answer.json() == {"data": request().wire()}
    assert decision.json() == {"data": {"id": "per_1", "effect": "ask"}}
    assert ingest.commands[1] == {
        "sessionID": "ses_1",
        "action": "bash",
        "resources": ["ls"],
        "agent": "plan",
    }


async def test_saved_approvals_are_the_locations_projects_unless_one_is_named(
    client: httpx.AsyncClient, ingest: FakeIngest
) -> None:
    """K-28: listed, and removed by id, whether or not it is there."""
    saved = {"id": "psv_1", "projectID": "p", "action": "bash", "resource": "*"}
    ingest.serve("approval.list", {"data": {"saved": [saved]}})
    ingest.serve("approval.remove", {"data": {"id": "psv_1"}})

    approvals = await client.get("/api/permission/saved")
    await client.get("/api/permission/saved?projectID=p")
    removed = await client.delete("/api/permission/saved/psv_1")

    assert approvals.json() == {"data": [saved]}
    assert removed.status_code == 204
    assert ingest.commands == [
        {"projectID": project_id("/srv/default")},
        {"projectID": "p"},
        {"id": "psv_1"},
    ]
