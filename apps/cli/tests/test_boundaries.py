"""Undo and redo step through the prompts of a session."""

from fairlead_cli.boundaries import RevertBoundary, redo_boundary, undo_boundary
from fairlead_schema.session_values.revert_state import RevertState


def conversation(*kinds: str) -> list[dict[str, str]]:
    types = {"u": "user", "a": "assistant", "s": "system"}
    return [{"id": f"msg_{index}", "type": types[kind]} for index, kind in enumerate(kinds)]


def staged(boundary: RevertBoundary) -> RevertState:
    return RevertState(message_id=boundary.message_id, before=boundary.before or None)


TWO = conversation("u", "a", "u", "a", "a")
ALL = RevertBoundary("msg_0", before=True)


def test_undo_takes_the_last_prompt_and_then_the_one_before() -> None:
    """N-01: the boundary is the last message that stays. The first prompt has none before it."""
    assert undo_boundary(TWO, None) == RevertBoundary("msg_1")
    assert undo_boundary(TWO, staged(RevertBoundary("msg_1"))) == ALL
    assert undo_boundary(TWO, staged(ALL)) is None


def test_redo_brings_one_prompt_back_at_a_time() -> None:
    assert redo_boundary(TWO, staged(ALL)) == RevertBoundary("msg_1")
    assert redo_boundary(TWO, staged(RevertBoundary("msg_1"))) is None, (
        "the whole conversation is back"
    )


def test_every_undo_has_its_redo() -> None:
    talk = conversation("u", "s", "a", "u", "u", "a", "s", "u", "a")
    state, boundaries = None, []
    while (boundary := undo_boundary(talk, state)) is not None:
        boundaries.append(boundary)
        state = staged(boundary)

    back = [redo_boundary(talk, staged(boundary)) for boundary in reversed(boundaries)]

    assert boundaries == [
        RevertBoundary("msg_6"),
        RevertBoundary("msg_3"),
        RevertBoundary("msg_2"),
        ALL,
    ]
    assert back == [*reversed(boundaries[:-1]), None]


def test_a_session_without_prompts_has_nothing_to_undo() -> None:
    assert undo_boundary([], None) is None
    assert undo_boundary(conversation("s"), None) is None
    assert undo_boundary(conversation("u"), None) == ALL
