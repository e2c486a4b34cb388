"""A copy of an export has new ids, everywhere and consistently, and is an export like any other."""

import re

from fairlead_schema.ids import is_minted
from fairlead_schema.record import Recorded
from fairlead_schema.tools.content import managed_path
from fairlead_schema.transfer.lines import ExportedCommit
from fairlead_service import ids
from fairlead_session.calls.child_ids import child_of, first_prompt
from fairlead_session.fold.evolve import evolve
from fairlead_session.state.session import Session
from fairlead_session.transfer.copy import copy_export
from fairlead_session.transfer.copy_ids import CopiedIds
from fairlead_session.transfer.events import decode_stored, stored_events
from fairlead_session.transfer.reader import trusted_items
from fairlead_session.transfer.verification import verify_export
from fairlead_testing.exports import CHILD, OUTPUT, PARENT, tree_export

LINES = tree_export()
COPY = list(copy_export(LINES, PARENT, "ses_copy"))


def events_of(lines: list[bytes], session_id: str) -> list[Recorded]:
    commits = (item for item in trusted_items(lines) if isinstance(item, ExportedCommit))
    payloads = [item.payload for item in commits if item.session_id == session_id]
    return [event for payload in payloads for event in decode_stored(stored_events(payload))]


def test_the_copy_of_a_tree_is_verified_like_an_export() -> None:
    summary = verify_export(COPY)

    parent, child = summary.sessions.values()
    assert parent.id == "ses_copy"
    assert child.parent_id == "ses_copy"
    assert (parent.seq, child.seq) == (23, 2)
    assert parent.message_ids != ["msg_mine"]


def test_no_id_of_the_original_is_left() -> None:
    whole = b"".join(COPY)

    old = {PARENT, CHILD, OUTPUT, "msg_mine", "msg_answer_1", "att_1", "per_1", first_prompt(CHILD)}
    found = set(re.findall(r"(?:ses|msg|evt|att|per|out)_[A-Za-z0-9_-]+", whole.decode()))
    assert not found & old
    assert not {id_ for id_ in found if id_.startswith("evt_")} & {
        event.id for session in (PARENT, CHILD) for event in events_of(LINES, session)
    }


def test_the_child_of_the_copy_answers_the_call_of_the_copy() -> None:
    """A worker finds the session of a sub-agent by its call."""
    session = Session(id="ses_copy")
    for recorded in events_of(COPY, "ses_copy"):
        session = evolve(session, recorded)
    answer = session.transcript.lines[-1].message
    child = verify_export(COPY).sessions.keys() - {"ses_copy"}

    assert child == {child_of("ses_copy", answer.id, "call_task")}
    (copied,) = child
    assert events_of(COPY, copied)[1].event.message_id == first_prompt(copied)  # type: ignore[union-attr]
    assert b'"structured":{"sessionID":"%s"}' % copied.encode() in b"".join(COPY)


def test_the_text_that_the_model_reads_names_the_copied_output() -> None:
    copied = CopiedIds(PARENT, "ses_copy").output(OUTPUT)

    assert managed_path(copied).encode() in b"".join(COPY)
    assert verify_export(COPY).sessions["ses_copy"].outputs.keys() == {copied}


def test_the_same_copy_has_the_same_ids_and_another_copy_has_others() -> None:
    """A crashed import is repeated, and finds what it wrote."""
    assert list(copy_export(LINES, PARENT, "ses_copy")) == COPY
    other = list(copy_export(LINES, PARENT, "ses_more"))
    ids_of_other = {event.id for event in events_of(other, "ses_more")}
    assert not ids_of_other & {event.id for event in events_of(COPY, "ses_copy")}


def test_a_minted_id_stays_minted_and_a_callers_id_stays_a_callers() -> None:
    copied = CopiedIds(PARENT, "ses_copy")
    minted = ids.message_id()

    assert is_minted(copied.message(minted))
    assert copied.message(minted)[:16] == minted[:16]
    assert not is_minted(copied.message("msg_mine"))


def test_the_callers_of_commits_stay() -> None:
    assert [event.by for event in events_of(COPY, "ses_copy")] == [
        event.by for event in events_of(LINES, PARENT)
    ]
