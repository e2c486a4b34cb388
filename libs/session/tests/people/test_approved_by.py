"""Who approved: the fold remembers it, explain says it, verify asks for it."""

import pytest
from libs.session.tests.conftest import CREATED, recorded

from fairlead_schema.events import PermissionAsked, PermissionReplied, SessionEvent
from fairlead_schema.permission import PermissionRequest, Reply
from fairlead_schema.record import Recorded
from fairlead_session.explain import explain
from fairlead_session.fold.evolve import evolve
from fairlead_session.fold.snapshot import freeze, thaw
from fairlead_session.state.session import Session
from fairlead_session.verify.verify import verify

ADA = "user:https://id.example/ada"


def log(*events: tuple[SessionEvent, str | None]) -> list[Recorded]:
    plain = recorded(CREATED, *(event for event, _by in events))
    callers = [None, *(by for _event, by in events)]
    return [item._replace(by=by) for item, by in zip(plain, callers, strict=True)]


def asked(id_: str) -> PermissionAsked:
    request = PermissionRequest(id=id_, session_id="ses_1", action="bash", resources=("ls",))
    return PermissionAsked(request=request, agent="build")


def permission_reply(id_: str, reply: Reply = "once") -> PermissionReplied:
    return PermissionReplied(request_id=id_, reply=reply)


def fold(items: list[Recorded]) -> Session:
    session = Session(id="ses_1")
    for item in items:
        session = evolve(session, item)
    return session


def test_explain_says_who_gave_the_newest_permission() -> None:
    session = fold(log((asked("per_1"), None), (permission_reply("per_1"), ADA)))

    explanation = explain(session)

    assert explanation.approved_by == ADA
    assert f"approved by {ADA}" in explanation.reason
    assert thaw(freeze(session)) == session


def test_a_rejection_does_not_change_who_approved() -> None:
    session = fold(
        log(
            (asked("per_1"), None),
            (permission_reply("per_1", "always"), ADA),
            (asked("per_2"), None),
            (permission_reply("per_2", "reject"), "key:ci"),
        )
    )

    assert session.asks.approved_by == ADA


def test_explain_of_an_older_log_names_nobody() -> None:
    explanation = explain(fold(log((asked("per_1"), None), (permission_reply("per_1"), None))))

    assert explanation.approved_by is None
    assert "approved" not in explanation.reason


@pytest.mark.parametrize(
    ("reply", "by", "rules"),
    [
        ("once", None, ["approved-by"]),
        ("always", None, ["approved-by"]),
        ("reject", None, []),
        ("once", "service:projector", []),
    ],
)
def test_an_approval_without_a_principal_is_a_violation_where_callers_are_named(
    reply: Reply, by: str | None, rules: list[str]
) -> None:
    items = log((asked("per_1"), ADA), (permission_reply("per_1", reply), by))

    assert [violation.rule for violation in verify(items)] == rules


def test_a_log_without_callers_stays_valid() -> None:
    assert verify(log((asked("per_1"), None), (permission_reply("per_1"), None))) == []
