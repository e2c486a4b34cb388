"""An export is verified completely: any change, cut or mixture of its lines is noticed."""

from hashlib import sha256

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from libs.session.tests.conftest import PROPERTY
from pydantic_core import from_json, to_json

from fairlead_schema.attachments.reference import attachment_uri, id_of_content
from fairlead_schema.events import PromptAdmitted, SessionArchived, SessionPurged
from fairlead_schema.prompt import Prompt, PromptFile
from fairlead_schema.subjects import Address
from fairlead_schema.transfer.lines import LINE_BYTES_MAX, ExportHeader, ExportLines
from fairlead_session.transfer.errors import ExportError
from fairlead_session.transfer.verification import verify_export
from fairlead_testing.exports import (
    CHILD,
    OUTPUT,
    OUTPUT_TEXT,
    PARENT,
    Life,
    child_life,
    created,
    export_lines,
    parent_life,
    payloads,
    tree_export,
)

LINES = tree_export()


def seal_again(lines: list[bytes]) -> list[bytes]:
    """The lines with right digests, as a forger would write them."""
    digest, written = sha256(), list[bytes]()
    for line in lines:
        raw = from_json(line)
        text = line
        if "digest" in raw:
            text = to_json(raw | {"digest": digest.hexdigest()}) + b"\n"
        digest.update(text)
        written.append(text)
    return written


def fault_of(lines: list[bytes]) -> tuple[str, str | None, int | None]:
    with pytest.raises(ExportError) as caught:
        verify_export(lines)
    return caught.value.fault, caught.value.session_id, caught.value.seq


def test_the_summary_says_what_an_import_brings() -> None:
    summary = verify_export(LINES)

    assert summary.header.by == "key:ann"
    assert summary.roots == [PARENT]
    parent, child = summary.sessions.values()
    assert (parent.seq, parent.directory, parent.message_ids) == (23, "/srv/project", ["msg_mine"])
    assert parent.outputs == {OUTPUT: len(OUTPUT_TEXT)}
    assert (child.id, child.parent_id, child.seq) == (CHILD, PARENT, 2)


def test_the_attachment_of_input_that_still_waits_is_part_of_an_export() -> None:
    """P-23: an export of a session with a pending prompt must be importable."""
    content = b"a large picture"
    id_ = id_of_content(content)
    file = PromptFile(uri=attachment_uri(id_), mime="image/png")
    prompt = Prompt(text="look", files=(file,))
    waits = PromptAdmitted(message_id="msg_waits", prompt=prompt, delivery="queue")
    life = (*child_life()[:1], ("key:ann", (waits,)))
    lines = ExportLines(ExportHeader(level=2, release="0", scope="session", tenant="default", at=1))
    at = Address("default", "ses_waits")
    written = [lines.first, lines.begin(at.session_id)]
    written += [lines.commit(payload) for payload in payloads(life, at)]
    written += [lines.output(id_, "image/png", len(content)), lines.chunk(content)]
    written += [lines.seal(), lines.end()]

    (session,) = verify_export(written).sessions.values()

    assert session.outputs == {id_: len(content)}


def test_an_export_of_a_release_without_checksums_is_verified_by_its_digests() -> None:
    assert verify_export(tree_export(with_checksum=False)).roots == [PARENT]


def test_an_exact_repeat_of_a_commit_is_no_fault() -> None:
    """H-16: a log may hold a commit twice, and so does its export."""
    lines = ExportLines(ExportHeader(level=1, release="0", scope="session", tenant="default", at=1))
    first, second = payloads(child_life(), Address("default", "ses_twice"))
    written = [lines.first, lines.begin("ses_twice")]
    written += [lines.commit(payload) for payload in (first, second, first, second)]

    summary = verify_export([*written, lines.seal(), lines.end()])

    assert summary.sessions["ses_twice"].seq == 2


@PROPERTY
@given(st.integers(min_value=0, max_value=len(LINES) - 1))
def test_any_prefix_is_truncated(length: int) -> None:
    fault, _session, _seq = fault_of(LINES[:length])

    assert fault == ("NotAnExport" if length == 0 else "Truncated")


@PROPERTY
@given(st.integers(min_value=1, max_value=len(b"".join(LINES)) - 1))
def test_any_cut_in_the_middle_of_a_line_is_noticed(length: int) -> None:
    whole = b"".join(LINES)[:length]

    assert fault_of(whole.splitlines(keepends=True))[0] in {"Truncated", "NotAnExport"}


@PROPERTY
@given(st.integers(0, len(LINES) - 1), st.integers(0, len(LINES)))
def test_any_doubled_line_is_noticed(line: int, place: int) -> None:
    changed = [*LINES[:place], LINES[line], *LINES[place:]]

    with pytest.raises(ExportError):
        verify_export(changed)


@PROPERTY
@given(st.permutations(range(len(LINES))))
def test_any_other_order_is_noticed(order: list[int]) -> None:
    assume(order != sorted(order))

    with pytest.raises(ExportError):
        verify_export([LINES[place] for place in order])


@PROPERTY
@given(st.data())
def test_any_changed_byte_is_noticed(data: st.DataObject) -> None:
    """D17: a changed word is noticed, wherever it stands."""
    number = data.draw(st.integers(0, len(LINES) - 1))
    line = LINES[number]
    place, byte = data.draw(st.integers(0, len(line) - 1)), data.draw(st.integers(0, 255))
    changed = bytes((*line[:place], byte, *line[place + 1 :]))
    assume(changed != line)
    whole = b"".join((*LINES[:number], changed, *LINES[number + 1 :]))

    with pytest.raises(ExportError):
        verify_export(whole.splitlines(keepends=True))


@PROPERTY
@given(st.integers(1, len(LINES) - 2))
def test_any_line_that_a_forger_leaves_out_is_noticed(number: int) -> None:
    """H-18: digests prove nothing against a forger. The counts, the order and the rules remain."""
    with pytest.raises(ExportError):
        verify_export(seal_again([*LINES[:number], *LINES[number + 1 :]]))


def test_a_changed_word_with_a_right_digest_breaks_the_checksum_of_its_commit() -> None:
    changed = [line.replace(b"Look around", b"Look afound") for line in LINES]

    assert fault_of(seal_again(changed)) == ("Checksum", PARENT, 2)


def test_a_commit_of_another_session_is_named() -> None:
    """H-20: the session of the line and the session of the file agree, or nothing is taken."""
    foreign = LINES[2].replace(PARENT.encode(), b"ses_other", 1)

    assert fault_of(seal_again([*LINES[:2], foreign, *LINES[3:]]))[0] == "OtherAggregate"


def test_a_commit_that_was_moved_to_another_session_breaks_its_checksum() -> None:
    moved = [line.replace(PARENT.encode(), b"ses_parenu") for line in LINES]

    assert fault_of(seal_again(moved))[0] == "Checksum"


def test_an_event_that_names_another_session_is_refused() -> None:
    """H-20: the session inside of an event counts too."""
    lives: dict[str, Life] = {"ses_other": parent_life()}

    assert fault_of(export_lines(lives)) == ("OtherAggregate", "ses_other", 15)


def test_a_gap_between_commits_is_named() -> None:
    """H-18"""
    life = [*parent_life()]
    lines = export_lines({PARENT: life})
    counts = from_json(lines[-2])
    sealed = to_json(counts | {"commits": counts["commits"] - 1, "events": counts["events"] - 1})
    end = from_json(lines[-1])
    end["end"] |= {"commits": counts["commits"] - 1, "events": counts["events"] - 1}
    cut = [*lines[:3], *lines[4:-2], sealed + b"\n", to_json(end) + b"\n"]

    assert fault_of(seal_again(cut)) == ("Gap", PARENT, 3)


def test_an_event_id_of_two_sessions_is_named() -> None:
    """H-04: event ids are unique everywhere."""
    lives: dict[str, Life] = {f"ses_{'x' * 8}a": child_life(), f"ses_{'x' * 8}b": child_life()}

    assert fault_of(export_lines(lives))[:1] == ("ForeignEventID",)


def test_a_session_that_begins_in_the_middle_is_refused() -> None:
    lives: dict[str, Life] = {PARENT: [(None, (SessionArchived(),))]}

    assert fault_of(export_lines(lives)) == ("Rule", PARENT, 1)


def test_a_purged_session_is_not_imported() -> None:
    lives: dict[str, Life] = {PARENT: [(None, (created(),)), (None, (SessionPurged(),))]}

    assert fault_of(export_lines(lives)) == ("Rule", PARENT, 2)


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (b'{"fairlead":"export","format":99}\n', "Format"),
        (b'{"fairlead":"export","format":1}\n', "Malformed"),
        (b'{"some":"thing"}\n', "NotAnExport"),
        (b"[" * 100_000 + b"\n", "NotAnExport"),
        (b"x" * (LINE_BYTES_MAX + 1), "LineTooLong"),
        (b"\xff\xfe\n", "NotAnExport"),
    ],
)
def test_a_file_that_is_no_export_is_refused_at_its_first_line(line: bytes, fault: str) -> None:
    assert fault_of([line, *LINES[1:]])[0] == fault


@pytest.mark.parametrize(
    ("commit", "fault"),
    [
        (b'{"id":"cmt_1","level":99,"events":[]}', "Level"),
        (
            b'{"id":"cmt_1","events":[{"id":"e","seq":1,"type":"dreamt","version":1,"data":{}}]}',
            "UnknownEvent",
        ),
        (b'{"id":"cmt_1","events":[]}', "Malformed"),
        (b'{"id":"cmt_1","events":' + b"[" * 500 + b"]" * 500 + b"}", "Malformed"),
        (b"null", "Malformed"),
    ],
)
def test_a_commit_that_this_release_cannot_read_is_named(commit: bytes, fault: str) -> None:
    """H-19"""
    line = b'{"of":"ses_parent","commit":' + commit + b"}\n"

    assert fault_of([*LINES[:2], line, *LINES[3:]])[0] == fault


def test_an_output_that_no_event_names_is_refused() -> None:
    lines = export_lines({PARENT: parent_life()}, {PARENT: {"out_other": b"x"}})

    assert fault_of(lines)[0] == "OtherAggregate"
