"""Every request gets an answer: data, or a typed error."""

import json
from typing import Any

import pytest
from typing_extensions import override

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.memory.session_log import MemoryLog
from fairlead_eventlog.ports import CommitPage, Head
from fairlead_ingest.command_context import CommandContext
from fairlead_ingest.verbs.profile.create import create
from fairlead_schema.commands.session import CreateSession
from fairlead_schema.subjects import Address
from services.ingest.tests.conftest import (
    AT,
    answer_command,
    answer_prompt,
    create_session,
    events,
    settings,
)

PROMPT = {"sessionID": "ses_1", "prompt": {"text": "hi"}}


def error(payload: bytes) -> dict[str, Any]:
    body = json.loads(payload)
    assert set(body) == {"error"}
    fields: dict[str, Any] = body["error"]
    return fields


async def test_an_answer_holds_the_receipt(context: CommandContext) -> None:
    """A-27: the answer uses camel case and leaves out absent keys."""
    await create_session(context)

    body = json.loads(await answer_prompt(context, json.dumps({**PROMPT, "id": "msg_1"}).encode()))

    assert body["data"]["admittedSeq"] == 2
    assert body["data"]["sessionID"] == "ses_1"
    assert "promotedSeq" not in body["data"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"prompt": None}, None),
        ({"prompt": "hi"}, "prompt"),
        ({"prompt": {}}, "prompt.text"),
        ({"prompt": {"text": 7}}, "prompt.text"),
        ({"prompt": {"text": "hi", "files": [{"uri": 3}]}}, "prompt.files.0.uri"),
        ({"delivery": "now"}, "delivery"),
        ({"resume": "perhaps"}, "resume"),
        ({"id": "ses_1"}, "id"),
        ({"id": "msg_a.b"}, "id"),
        ({"id": 7}, "id"),
        ({"sessionID": "nope"}, "sessionID"),
        ({"sessionID": "ses_*"}, "sessionID"),
        ({"sessionID": "ses_1.>"}, "sessionID"),
    ],
)
async def test_a_wrong_field_is_named(
    context: CommandContext, changes: dict[str, Any], field: str
) -> None:
    """A-10: the refusal names the wrong field, and ingest writes nothing."""
    await create_session(context)

    refusal = error(await answer_prompt(context, json.dumps({**PROMPT, **changes}).encode()))

    assert refusal["_tag"] == "InvalidRequestError"
    assert (refusal["kind"], refusal.get("field")) == ("Body", field)
    assert len(await events(context.eventlog)) == 1


@pytest.mark.parametrize(
    "body", [b"", b"not json", b"[]", b"7", b"null", b"\xff\xfe", b'{"prompt":', b"[" * 5000]
)
async def test_what_is_no_command_is_refused(context: CommandContext, body: bytes) -> None:
    """A-10: malformed JSON gets a typed error too."""
    assert error(await answer_prompt(context, body))["_tag"] == "InvalidRequestError"


async def test_a_lone_surrogate_is_refused(context: CommandContext) -> None:
    """A-10: the log cannot store such a text."""
    body = b'{"sessionID":"ses_1","prompt":{"text":"\\ud800"}}'

    assert error(await answer_prompt(context, body))["_tag"] == "InvalidRequestError"


async def test_unknown_extra_keys_are_ignored(context: CommandContext) -> None:
    """A-12: a newer client may send keys that this release does not know."""
    await create_session(context)

    body = json.loads(await answer_prompt(context, json.dumps({**PROMPT, "future": 1}).encode()))

    assert "data" in body


async def test_a_tenant_that_is_no_name_is_refused(context: CommandContext) -> None:
    """A-10: a tenant becomes a token of a subject."""
    refusal = error(await answer_prompt(context, json.dumps(PROMPT).encode(), tenant="a b"))

    assert (refusal["_tag"], refusal["kind"]) == ("InvalidRequestError", "Params")


async def test_refusals_keep_their_tags(context: CommandContext) -> None:
    """A-10: the error of an unknown session names that session."""
    refusal = error(await answer_prompt(context, json.dumps(PROMPT).encode()))

    assert (refusal["_tag"], refusal["sessionID"]) == ("SessionNotFoundError", "ses_1")


class AwayLog(MemoryLog):
    """A log that fails every read, by default because its servers are away."""

    failure: Exception = LogUnavailable("no servers")

    @override
    async def read(
        self, at: Address, *, after: Head, limit: int = 500, reach: int = 0
    ) -> CommitPage:
        raise self.failure

    @override
    async def last_commit_position(self, at: Address) -> int:
        raise self.failure


async def test_an_unavailable_log_is_answered_as_such(eventlog: EventLog) -> None:
    """A-10: the error says that the caller may try again."""
    object.__setattr__(eventlog, "log", AwayLog())
    context = CommandContext(eventlog, settings())

    body = await answer_command(context, b'{"id":"ses_1"}', CreateSession, create)

    refusal = error(body)
    assert (refusal["_tag"], refusal["service"]) == ("ServiceUnavailableError", "session.log")


async def test_a_defect_of_ours_is_answered_with_a_reference(
    eventlog: EventLog, caplog: pytest.LogCaptureFixture
) -> None:
    """A-06: the answer is an unknown error with a reference that the service logs too."""
    log = AwayLog()
    log.failure = RuntimeError("secret detail")
    object.__setattr__(eventlog, "log", log)
    context = CommandContext(eventlog, settings())

    refusal = error(await answer_command(context, b'{"id":"ses_1"}', CreateSession, create))

    assert refusal["_tag"] == "UnknownError"
    assert "secret" not in refusal["message"]
    assert refusal["ref"] in [getattr(record, "ref", None) for record in caplog.records]


async def test_a_session_that_cannot_be_read_is_answered_with_its_reason(
    eventlog: EventLog,
) -> None:
    """H-19: the answer names the event that stopped the session."""
    context = CommandContext(eventlog, settings())
    assert isinstance(eventlog.log, MemoryLog)
    strange = b'{"id":"c","events":[{"type":"from.the.future","version":9,"data":{}}]}'
    await eventlog.log.append_raw(AT, strange)

    refusal = error(await answer_prompt(context, json.dumps(PROMPT).encode()))

    assert refusal["_tag"] == "ServiceUnavailableError"
    assert "from.the.future.9" in refusal["message"]
