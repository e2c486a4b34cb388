"""Pruning: old large outputs become references in requests, in one step, and nowhere else."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from libs.session.tests.conftest import (
    CREATED,
    INITIALISED,
    MODEL,
    PROPERTY,
    dispatched,
    promoted,
    step_ended,
    step_started,
    then,
)
from libs.session.tests.conftest import given as session_of

from fairlead_schema.events import (
    CompactionEnded,
    ContextPruned,
    SessionEvent,
    ToolCalled,
    ToolFailed,
    ToolInputStarted,
    ToolSucceeded,
)
from fairlead_schema.provider.request import ToolTurn
from fairlead_schema.tools.content import ErrorInfo, Executor, TextContent
from fairlead_session.compaction.pruning import prune, request_history
from fairlead_session.fold.snapshot import freeze, thaw
from fairlead_session.state.session import Session
from fairlead_session.turn.history import history
from fairlead_session.turn.prefix import broken_since_last_request, fingerprint, prefix
from fairlead_session.turn.request import ModelIdentity, build

IDENTITY = ModelIdentity(MODEL, "fast-1")
BIG, SMALL = "x" * 5000, "y" * 100


def called(
    number: int, output: str, *, paths: tuple[str, ...] | None = None, hosted: bool = False
) -> tuple[SessionEvent, ...]:
    """A turn that calls a tool."""
    id_, call, by = f"msg_a{number}", f"call_{number}", Executor(executed=hosted)
    ended = ToolSucceeded(
        assistant_message_id=id_,
        call_id=call,
        structured={},
        content=(TextContent(text=output),),
        output_paths=paths,
        provider=by,
    )
    return (
        dispatched(id_),
        step_started(id_),
        ToolInputStarted(assistant_message_id=id_, call_id=call, name="read"),
        ToolCalled(
            assistant_message_id=id_, call_id=call, tool="read", input={"n": number}, provider=by
        ),
        ended,
        step_ended(id_),
    )


def grown(*turns: tuple[SessionEvent, ...]) -> Session:
    return session_of(
        CREATED, INITIALISED, promoted("msg_1"), *(event for turn in turns for event in turn)
    )


def outputs(session: Session) -> list[Any]:
    turns = build(session, IDENTITY).turns
    return [turn.result.value for turn in turns if isinstance(turn, ToolTurn)]


def cut(session: Session, turns: int = 1) -> ContextPruned | None:
    return prune(session, turns=turns, over_bytes=4096)


def test_old_large_outputs_are_sent_as_references() -> None:
    """G-40: those of the newest turns, small ones and stored paths stay."""
    session = grown(
        called(1, BIG, paths=("/out/1",)), called(2, SMALL), called(3, BIG), called(4, BIG)
    )

    event = cut(session)
    assert event is not None
    pruned = then(session, event)

    one, two, three, four = outputs(pruned)
    assert "5027 bytes" in one
    assert "/out/1" in one
    assert (two, four) == (SMALL, BIG)
    assert "bytes was left out" in three
    assert "is in" not in three
    assert history(pruned) == history(session), "the transcript stays whole"
    assert thaw(freeze(pruned)) == pruned


def test_a_failed_call_keeps_its_error() -> None:
    *before, _success, ended = called(1, BIG)
    failed = ToolFailed(
        assistant_message_id="msg_a1",
        call_id="call_1",
        error=ErrorInfo(message="denied"),
        provider=Executor(),
    )
    session = grown((*before, failed, ended), called(2, SMALL))

    assert cut(session) is None
    assert outputs(session)[0]["error"] == "denied"


def test_a_providers_own_result_of_no_known_type_is_never_pruned() -> None:
    """P-08: the provider may read it back and check it."""
    assert cut(grown(called(1, BIG, hosted=True), called(2, SMALL))) is None


def hosted_output(number: int) -> tuple[SessionEvent, ...]:
    """A turn with a large result of code that the provider ran."""
    *before, succeeded, ended = called(number, BIG, hosted=True)
    native = {"anthropic": {"type": "code_execution_tool_result"}}
    result = {"type": "code_execution_result", "stdout": BIG}
    by = Executor(executed=True, metadata=native)
    update = {"result": result, "content": (), "provider": by}
    return (*before, succeeded.model_copy(update=update), ended)


def test_a_pruning_of_an_earlier_release_leaves_hosted_results_whole() -> None:
    """P-08: an upgrade breaks no prefix; only a pruning that says so shortens them."""
    session = grown(hosted_output(1), called(2, BIG), called(3, SMALL))
    event = cut(session)
    assert event is not None
    assert event.hosted

    before = then(session, event.model_copy(update={"hosted": None}))
    after = then(session, event)

    assert BIG in str(request_history(before)[1])
    assert BIG not in str(request_history(after)[1])
    assert history(after) == history(session)


@pytest.mark.parametrize("turns", [0, 2, 9])
def test_nothing_old_or_switched_off_prunes_nothing(turns: int) -> None:
    """G-40: 0 turns switches it off."""
    assert cut(grown(called(1, BIG), called(2, SMALL)), turns) is None


def test_between_two_compactions_it_happens_once() -> None:
    session = grown(called(1, BIG), called(2, BIG))
    event = cut(session)
    assert event is not None
    later = then(session, event, *called(3, BIG), *called(4, BIG))

    ended = CompactionEnded(message_id="msg_c", reason="auto", text="sum", recent="")
    compacted = then(later, ended, *called(5, BIG), *called(6, SMALL))

    assert cut(later) is None
    assert later.requests.prune_cutoff is not None
    assert compacted.requests.prune_cutoff is None
    assert cut(compacted) is not None


def with_request(session: Session, turn: tuple[SessionEvent, ...]) -> Session:
    """One more turn, whose request leaves its fingerprint."""
    attempt, *rest = turn
    recorded_attempt = attempt.model_copy(
        update={"request_hash": fingerprint(build(session, IDENTITY))}
    )
    return then(session, recorded_attempt, *rest)


@PROPERTY
@given(st.lists(st.sampled_from([BIG, SMALL]), min_size=3, max_size=8), st.integers(1, 7))
def test_the_prefix_breaks_once_and_says_why(sizes: list[str], at: int) -> None:
    """Every request but the first after the pruning opens with the one before."""
    session, breaks = grown(), []
    for number, output in enumerate(sizes):
        event = cut(session) if number >= at else None
        session = then(session, event) if event is not None else session
        now = prefix(build(session, IDENTITY))
        breaks.append(broken_since_last_request(session, now, "build", MODEL))
        session = with_request(session, called(number, output))

    parts = [source for source in breaks if source is not None]
    assert parts in ([], ["pruning"])
    assert bool(parts) == (session.requests.prune_cutoff is not None)


def test_what_was_pruned_stays_the_same_bytes() -> None:
    session = grown(called(1, BIG), called(2, BIG))
    event = cut(session)
    assert event is not None
    states = [then(session, event)]
    for number in (3, 4, 5):
        states.append(then(states[-1], *called(number, BIG)))

    for before, after in pairwise(states):
        assert request_history(after)[: len(request_history(before))] == request_history(before)
