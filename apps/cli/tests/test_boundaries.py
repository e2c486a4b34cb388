"""Undo and redo step through the prompts of a session."""

from fairlead_cli.boundaries import redo_boundary, undo_boundary


def conversation(*kinds: str) -> list[dict[str, str]]:
    types = {"u": "user", "a": "assistant", "s": "system"}
    return [{"id": f"msg_{index}", "type": types[kind]} for index, kind in enumerate(kinds)]


TWO = conversation("u", "a", "u", "a", "a")


def test_undo_takes_the_last_prompt_and_then_the_one_before() -> None:
    """N-01: the boundary is the last message that stays."""
    assert undo_boundary(TWO, None) == "msg_1"
    assert undo_boundary(TWO, "msg_1") == "msg_0", "the first prompt stays, its answer leaves"
    assert undo_boundary(TWO, "msg_0") is None


def test_redo_brings_one_prompt_back_at_a_time() -> None:
    assert redo_boundary(TWO, "msg_0") == "msg_1"
    assert redo_boundary(TWO, "msg_1") is None, "the whole conversation is back"


def test_every_undo_has_its_redo() -> None:
    talk = conversation("u", "s", "a", "u", "u", "a", "s", "u", "a")
    staged, boundaries = None, []
    while (staged := undo_boundary(talk, staged)) is not None:
        boundaries.append(staged)

    back = [redo_boundary(talk, boundary) for boundary in reversed(boundaries)]

    assert boundaries == ["msg_6", "msg_3", "msg_2", "msg_0"]
    assert back == [*reversed(boundaries[:-1]), None]


def test_a_session_without_prompts_has_nothing_to_undo() -> None:
    assert undo_boundary([], None) is None
    assert undo_boundary(conversation("s"), None) is None
    assert undo_boundary(conversation("u"), None) is None
