"""The manifest is closed, and has every event that existing clients know."""

import json
from pathlib import Path

from fairlead_schema.events import BY_TYPE, MANIFEST, Visibility
from fairlead_schema.public_events import public_event
from fairlead_schema.record import decode_event
from fairlead_schema.session_values import event_names

GOLDEN = Path(__file__).parent / "golden"

# WIRE.md section 5: the durable events, as clients know them.
DURABLE = {
    "session.next.agent.switched": 1,
    "session.next.model.switched": 1,
    "session.next.moved": 1,
    "session.next.prompt.admitted": 1,
    "session.next.prompted": 1,
    "session.next.context.updated": 1,
    "session.next.synthetic": 1,
    "session.next.shell.started": 1,
    "session.next.shell.ended": 1,
    "session.next.step.started": 1,
    "session.next.step.ended": 2,
    "session.next.step.failed": 2,
    "session.next.text.started": 1,
    "session.next.text.ended": 1,
    "session.next.reasoning.started": 1,
    "session.next.reasoning.ended": 1,
    "session.next.tool.input.started": 1,
    "session.next.tool.input.ended": 1,
    "session.next.tool.called": 1,
    "session.next.tool.progress": 1,
    "session.next.tool.success": 1,
    "session.next.tool.failed": 1,
    "session.next.retried": 1,
    "session.next.compaction.started": 1,
    "session.next.compaction.ended": 1,
    "session.next.revert.staged": 1,
    "session.next.revert.cleared": 1,
    "session.next.revert.committed": 1,
}
NOTICES = {
    "budget.set",
    "revert.requested",
    "revert.failed",
    "move.requested",
    "move.failed",
    "move.ended",
    "session.created",
    "session.archived",
    "session.unarchived",
    "session.described",
    "title.ended",
    "session.purged",
    "input.cancelled",
    "input.edited",
    "shell.requested",
    "interrupt.requested",
    "resume.requested",
    "execution.recovered",
    "execution.released",
    "compaction.failed",
    "compaction.requested",
    "compaction.used",
    "permission.v2.asked",
    "permission.v2.replied",
    "question.v2.asked",
    "question.v2.replied",
    "question.v2.rejected",
    "todo.updated",
}
PRIVATE = {
    "command.answered",
    "title.requested",
    "session.stored",
    "revert.begun",
    "move.begun",
    "execution.claimed",
    "attempt.dispatched",
    "attempt.finished",
    "attempt.overflowed",
    "tool.deferred",
    "tool.started",
    "context.initialised",
    "context.replaced",
    "context.advanced",
    "context.pruned",
    "child.finished",
}


def public_versions(visibility: Visibility) -> dict[str, int]:
    """The events of one visibility, with their client names and versions."""
    names = [f"{kind.type}.{kind.version}.json" for kind in MANIFEST]
    events = [decode_event(json.loads((GOLDEN / name).read_text())) for name in names]
    envelopes = [
        public_event("ses_1", event) for event in events if event.event.visibility == visibility
    ]
    return {envelope.type: envelope.durable.version for envelope in envelopes if envelope.durable}


def test_the_public_events_are_exactly_the_durable_events_clients_know() -> None:
    """H-40, Q-03: with the versions that clients know."""
    assert public_versions("public") == DURABLE


def test_notices_keep_the_names_outside_the_session_prefix() -> None:
    assert public_versions("notice").keys() == NOTICES


def test_readers_that_load_no_event_know_the_names_of_all_notices() -> None:
    assert event_names.NOTICES == NOTICES


def test_private_events_are_the_bookkeeping_of_the_services() -> None:
    assert {kind.type for kind in MANIFEST if kind.visibility == "private"} == PRIVATE


def test_no_two_events_share_a_type_and_version() -> None:
    assert len(BY_TYPE) == len(MANIFEST)
