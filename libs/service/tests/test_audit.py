"""Audit lines: one for each refusal, with principal, tenant, action, resource and outcome."""

import logging

import pytest

from fairlead_schema import subjects
from fairlead_schema.errors import Forbidden, InvalidRequest, LimitReached, Refused
from fairlead_service.audit import audit_own_client

OWN = subjects.as_principal("acme", "key:one", "permission.reply")


@pytest.mark.parametrize("refused", [Forbidden("no"), LimitReached("no")], ids=repr)
def test_a_refusal_to_an_own_client_is_one_line(
    caplog: pytest.LogCaptureFixture, refused: Refused
) -> None:
    caplog.set_level(logging.INFO, "fairlead.audit")

    audit_own_client(OWN, refused)

    (line,) = [vars(record) for record in caplog.records]
    assert (line["action"], line["outcome"]) == ("permission.reply", "refused")
    assert (line["principal"], line["tenant"]) == ("key:one", "acme")
    assert (line["resource"], line["reason"]) == (OWN, "no")


@pytest.mark.parametrize(
    ("subject", "refused"),
    [
        (OWN, None),
        (OWN, InvalidRequest("not a refusal of the caller")),
        (subjects.api("acme", "permission.reply"), Forbidden("the gateway writes this line")),
    ],
)
def test_other_answers_have_no_line_here(
    caplog: pytest.LogCaptureFixture, subject: str, refused: Refused | None
) -> None:
    caplog.set_level(logging.INFO, "fairlead.audit")

    audit_own_client(subject, refused)

    assert caplog.records == []
