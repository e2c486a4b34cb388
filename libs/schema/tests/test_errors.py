"""Refusals: the tags, statuses and texts that existing clients match on."""

import re

import pytest

from fairlead_schema import errors
from fairlead_schema.errors import MESSAGE_LENGTH_MAX, Refused, WireError

# WIRE.md section 2, without the two errors of terminals.
WIRE = {
    "InvalidRequestError": 400,
    "InvalidCursorError": 400,
    "UnauthorizedError": 401,
    "SessionNotFoundError": 404,
    "MessageNotFoundError": 404,
    "PermissionNotFoundError": 404,
    "QuestionNotFoundError": 404,
    "ProviderNotFoundError": 404,
    "ConflictError": 409,
    "UnknownError": 500,
    "ServiceUnavailableError": 503,
}
# Errors that Fairlead adds (section 8).
ADDED = {
    "InvalidExportError": 400,
    "ForbiddenError": 403,
    "AttachmentNotFoundError": 404,
    "FileNotFoundError": 404,
    "ToolOutputNotFoundError": 404,
    "WebhookNotFoundError": 404,
    "DeliveryNotFoundError": 404,
    "ScheduleNotFoundError": 404,
    "RevertRefusedError": 409,
    "MoveRefusedError": 409,
    "ChangesKeptError": 409,
    "ReplayConflictError": 409,
    "SessionStoredError": 409,
    "CursorExpiredError": 410,
    "TooLargeError": 413,
    "TooManyError": 429,
}

REFUSALS = [
    errors.InvalidRequest("Invalid session ID", kind="Params", field="sessionID"),
    errors.InvalidCursor(),
    errors.Unauthorized(),
    errors.SessionNotFound("ses_1"),
    errors.MessageNotFound("ses_1", "msg_1"),
    errors.PermissionNotFound("per_1"),
    errors.QuestionNotFound("que_1"),
    errors.OutputNotFound("out_1"),
    errors.ProviderNotFound("acme"),
    errors.Conflict("Prompt id is taken", "msg_1"),
    errors.CursorExpired("The events after 3 are gone"),
    errors.PayloadTooLarge("The body has more than 1048576 bytes"),
    errors.LimitReached("1000 inputs are pending"),
    errors.InternalFailure("Unexpected error", ref="err_0a1b2c3d"),
    errors.ServiceUnavailable("Session wait is not available yet", service="session.wait"),
    errors.Forbidden("The scope session:write is missing"),
    errors.RevertRefused("a step has no snapshot of the files", "ses_1"),
    errors.MoveRefused("the changes do not apply", "ses_1"),
    errors.ChangesKept("a file changed meanwhile", "ses_1"),
    errors.InvalidExport("Gap", "event 3 is missing", session_id="ses_1", seq=3),
    errors.ReplayConflict("Divergent", "event 3 is another one", session_id="ses_1", seq=3),
    errors.AttachmentNotFound("fil_1"),
    errors.FileMissing("a.py"),
    errors.WebhookNotFound("whk_1"),
    errors.DeliveryNotFound("dlv_1", "it is gone"),
    errors.ScheduleNotFound("sch_1"),
    errors.SessionIsStored("ses_1", "ses_1.fairlead.jsonl"),
]


def test_tags_and_states_are_those_of_the_wire_contract() -> None:
    kinds = Refused.__subclasses__()

    assert {kind.tag: kind.status for kind in kinds} == WIRE | ADDED
    assert {type(refusal) for refusal in REFUSALS} == set(kinds)


def test_the_drawn_tree_shows_every_refusal_with_its_state() -> None:
    drawn = re.findall(r"[├└]── (\w+) +(\d+)", errors.__doc__ or "")

    assert {name: int(status) for name, status in drawn} == {
        kind.__name__: kind.status for kind in Refused.__subclasses__()
    }


@pytest.mark.parametrize(
    ("refusal", "body"),
    [
        (REFUSALS[0], {"message": "Invalid session ID", "kind": "Params", "field": "sessionID"}),
        (REFUSALS[1], {"message": "Invalid cursor"}),
        (REFUSALS[2], {"message": "Authentication required"}),
        (REFUSALS[3], {"message": "Session not found: ses_1", "sessionID": "ses_1"}),
        (
            REFUSALS[4],
            {"message": "Message not found: msg_1", "sessionID": "ses_1", "messageID": "msg_1"},
        ),
        (REFUSALS[5], {"message": "Permission request not found: per_1", "requestID": "per_1"}),
        (REFUSALS[6], {"message": "Question request not found: que_1", "requestID": "que_1"}),
        (REFUSALS[7], {"message": "Tool output not found: out_1", "resource": "out_1"}),
        (REFUSALS[8], {"message": "Provider not found: acme", "providerID": "acme"}),
        (REFUSALS[9], {"message": "Prompt id is taken: msg_1", "resource": "msg_1"}),
        (REFUSALS[13], {"message": "Unexpected error", "ref": "err_0a1b2c3d"}),
        (
            REFUSALS[14],
            {"message": "Session wait is not available yet", "service": "session.wait"},
        ),
    ],
)
def test_bodies_carry_the_fixed_texts_and_fields(refusal: Refused, body: dict[str, str]) -> None:
    assert refusal.body.wire() == {"_tag": refusal.tag, **body}


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: type(refusal).__name__)
def test_a_refusal_keeps_its_kind_from_service_to_service(refusal: Refused) -> None:
    rebuilt = Refused.from_wire(WireError.model_validate(refusal.body.wire()))

    assert type(rebuilt) is type(refusal)
    assert rebuilt.body == refusal.body
    assert str(rebuilt) == refusal.body.message


def test_a_tag_from_a_newer_service_is_an_unknown_error() -> None:
    rebuilt = Refused.from_wire(WireError(tag="BrandNewError", message="hm"))

    assert type(rebuilt) is errors.InternalFailure
    assert rebuilt.status == 500


def test_a_long_message_is_cut_and_says_by_how_much() -> None:
    whole = errors.InvalidRequest("x" * MESSAGE_LENGTH_MAX)
    cut = errors.InvalidRequest("x" * (MESSAGE_LENGTH_MAX + 7))

    assert whole.body.message == "x" * 1024
    assert cut.body.message == "x" * 1024 + "... (7 more chars)"
