"""The nesting limit: no accepted value makes a commit unreadable."""

from typing import Any

import pytest

from fairlead_schema.events import ToolSucceeded
from fairlead_schema.json_depth import DEPTH_MAX, is_too_deep
from fairlead_schema.record import Commit, MalformedCommit, Recorded, decode, encode
from fairlead_schema.tools.content import Executor


def nest(levels: int) -> dict[str, Any]:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    table: dict[str, Any] = value
    return table


def encode_commit(structured: dict[str, Any]) -> bytes:
    event = ToolSucceeded(
        assistant_message_id="msg_1",
        call_id="c",
        structured=structured,
        content=(),
        provider=Executor(executed=False),
    )
    return encode(Commit("cmt_1", (Recorded(id="evt_1", seq=1, time=1, event=event),)))


def test_the_deepest_value_that_passes_is_read_again() -> None:
    deepest = nest(DEPTH_MAX)

    assert not is_too_deep(deepest)
    assert is_too_deep(nest(DEPTH_MAX + 1))
    assert getattr(decode(encode_commit(deepest)).events[0].event, "structured", None) == deepest


def test_what_could_be_written_but_never_read_does_not_pass() -> None:
    unreadable = nest(198)

    with pytest.raises(MalformedCommit):
        decode(encode_commit(unreadable))
    assert is_too_deep(unreadable)
