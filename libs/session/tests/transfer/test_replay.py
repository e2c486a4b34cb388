"""The rules of a replay, in their order (H-14 to H-27)."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from libs.session.tests.conftest import PROPERTY

from fairlead_session.transfer.events import StoredEvent, decode_stored
from fairlead_session.transfer.replay import (
    ReplayAccepted,
    ReplayRefused,
    ReplaySkipped,
    ReplayTarget,
    judge_replay,
)
from fairlead_testing.exports import PARENT, parent_life, stored_life

EVENTS = stored_life(parent_life(), PARENT)


def target(seq: int, origin: str | None = None) -> ReplayTarget:
    stored = {event["seq"]: event for event in EVENTS[:seq]}
    return ReplayTarget(seq, origin, stored, frozenset(event["id"] for event in EVENTS[:seq]))


def judge(
    to: ReplayTarget,
    batch: Sequence[StoredEvent],
    *,
    origin: str | None = None,
    strict: bool = False,
) -> tuple[object, ...]:
    outcome = judge_replay(to, batch, origin=origin, strict=strict)
    match outcome:
        case ReplayAccepted():
            return ([event["seq"] for event in outcome.new], outcome.claims)
        case ReplaySkipped():
            return ("skipped", outcome.origin)
        case ReplayRefused():
            return (outcome.fault, outcome.seq)


def changed(event: StoredEvent) -> StoredEvent:
    return event | {"time": event["time"] + 1}


@PROPERTY
@given(st.integers(0, 23), st.integers(0, 23), st.integers(0, 23))
def test_whatever_a_session_has_of_a_batch_only_the_rest_is_new(
    seq: int, first: int, length: int
) -> None:
    """H-16, H-18, H-21: exact repeats change nothing, later chunks follow, a gap is refused."""
    batch = EVENTS[first : first + length]

    outcome = judge(target(seq), batch)

    if batch and first > seq:
        assert outcome == ("Gap", first + 1)
    else:
        assert outcome == ([event["seq"] for event in batch if event["seq"] > seq], False)
    assert len(decode_stored(batch)) == len(batch)


@PROPERTY
@given(st.integers(1, 23), st.sampled_from(["id", "time", "data", "by", "type"]))
def test_any_other_content_at_a_place_is_divergent(seq: int, key: str) -> None:
    """H-17: nothing of the batch is taken."""
    other = EVENTS[seq - 1] | {key: "other"}

    assert judge(target(seq), [*EVENTS[: seq - 1], other, *EVENTS[seq:]]) == ("Divergent", seq)


def test_an_event_id_of_another_place_is_refused() -> None:
    """H-04, H-27: the last check."""
    reused = EVENTS[10] | {"id": EVENTS[3]["id"]}

    assert judge(target(10), [reused]) == ("ForeignEventID", 11)
    assert judge(target(9), [EVENTS[9], EVENTS[10] | {"id": EVENTS[9]["id"]}]) == (
        "ForeignEventID",
        11,
    )


def test_a_replay_with_an_origin_claims_a_session_without_one() -> None:
    """H-24: also by an exact repeat."""
    assert judge(target(5), EVENTS[:8], origin="east") == ([6, 7, 8], True)
    assert judge(target(5), EVENTS[:5], origin="east") == ([], True)
    assert judge(target(5, "east"), EVENTS[:8], origin="east") == ([6, 7, 8], False)


def test_another_origin_is_skipped_unless_it_is_strict() -> None:
    """H-25, H-26: strict refuses even an exact repeat."""
    for origin in ("west", None):
        assert judge(target(5, "east"), EVENTS[:8], origin=origin) == ("skipped", "east")
        assert judge(target(5, "east"), EVENTS[:5], origin=origin) == ([], False)
        assert judge(target(5, "east"), EVENTS[:5], origin=origin, strict=True) == ("Origin", 1)


def test_the_checks_have_one_order() -> None:
    """H-27: strict origin, repeats, another origin, gap, event id."""
    owned = target(5, "east")
    divergent, gap = [changed(EVENTS[4])], [EVENTS[7]]
    reused = [EVENTS[7] | {"id": EVENTS[3]["id"]}]

    assert judge(owned, divergent, origin="west", strict=True)[0] == "Origin"
    assert judge(owned, [*divergent, *gap], origin="west")[0] == "Divergent"
    assert judge(owned, gap, origin="west") == ("skipped", "east")
    assert judge(replace(owned, origin=None), reused)[0] == "Gap"


def test_an_empty_batch_brings_nothing() -> None:
    """H-21"""
    assert judge(target(5), []) == ([], False)
