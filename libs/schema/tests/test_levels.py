"""Levels of the log's format: which events an older release can read."""

from pathlib import Path

import pytest

from fairlead_schema import record
from fairlead_schema.attachments.reference import attachment_uri, id_of_content
from fairlead_schema.events import MANIFEST, PromptAdmitted, SessionArchived
from fairlead_schema.prompt import AttachedContent, Prompt, PromptFile
from fairlead_schema.record import (
    LEVEL_NEWEST,
    Commit,
    MalformedCommit,
    NewerCommit,
    Recorded,
    decode,
    encode,
)
from fairlead_testing.newer_release import WeatherNoted, newer_release

LEVEL_1 = set((Path(__file__).parent / "level_1.txt").read_text().split())


def test_a_new_event_has_a_level_above_the_first() -> None:
    """A13: an older release runs beside this one until the operator finalises the next level."""
    first = {f"{kind.type}.{kind.version}" for kind in MANIFEST if kind.level == 1}

    assert first <= LEVEL_1, (
        "older releases cannot read a new event or version. Give the class `level = "
        "LEVEL_NEWEST + 1`, add one to LEVEL_NEWEST, and let the decider write it only at that level"
    )
    levels = {kind.level for kind in MANIFEST} | {record.LEVEL_OF_IMPORTS}
    assert levels == set(range(1, LEVEL_NEWEST + 1))


def commit_of_newer_release() -> bytes:
    with newer_release():
        event = WeatherNoted(sky="grey")
        return encode(Commit("cmt_1", (Recorded("evt_1", 1, 1, event),)))  # type: ignore[arg-type]


def test_a_commit_of_the_first_level_has_the_bytes_of_before() -> None:
    payload = encode(Commit("cmt_1", (Recorded("evt_1", 1, 1, SessionArchived()),)))

    assert payload.startswith(b'{"id":"cmt_1","events":[')


def test_a_commit_of_a_newer_release_is_not_malformed() -> None:
    """Whatever the newer release changed in it, the commit says that a newer release can read it."""
    payload = commit_of_newer_release()

    with pytest.raises(NewerCommit, match="newer release wrote it"):
        decode(payload)
    with pytest.raises(NewerCommit, match="level 7"):
        decode(b'{"id":7,"level":7,"events":"packed"}')
    with pytest.raises(MalformedCommit):
        decode(b'{"id":7,"level":"seven","events":[]}')


def test_the_newer_release_reads_both() -> None:
    payload = commit_of_newer_release()

    with newer_release():
        assert decode(payload).level == record.LEVEL_NEWEST
        assert encode(decode(payload)) == payload


def test_a_prompt_with_stored_content_needs_the_level_that_knows_it() -> None:
    """P-23: an older release would show its model nothing of the file."""
    inline, stored = (
        PromptFile(uri="a.py", mime="text/x-python"),
        attachment_uri(id_of_content(b"")),
    )
    content = AttachedContent(mime="text/x-python", text="x")
    taken = PromptFile(uri="a.py", mime="text/x-python", content=content)
    uploaded = PromptFile(uri=stored, mime="image/png")

    levels = [
        Commit("cmt_1", (Recorded("evt_1", 1, 1, admitted_prompt(file)),)).level
        for file in (inline, taken, uploaded)
    ]

    assert levels == [1, 2, 2]


def admitted_prompt(file: PromptFile) -> PromptAdmitted:
    prompt = Prompt(text="see", files=(file,))
    return PromptAdmitted(message_id="msg_1", prompt=prompt, delivery="steer")
