"""What is kept by the identity of an object: made once, and never for another object."""

from fairlead_session.identity_memo import kept_by_identity


def test_the_same_object_is_used_once_and_an_equal_one_again() -> None:
    made: list[dict[str, int]] = []

    @kept_by_identity(2)
    def length(source: dict[str, int]) -> int:
        made.append(source)
        return len(source)

    first, equal = {"a": 1}, {"a": 1}

    assert [length(first), length(first), length(equal), length(first)] == [1, 1, 1, 1]
    assert made == [first, equal]


def test_an_object_that_was_forgotten_is_used_again() -> None:
    made: list[int] = []

    @kept_by_identity(1)
    def length(source: list[int]) -> int:
        made.append(len(source))
        return len(source)

    one, two = [1], [1, 2]
    for source in (one, two, one):
        length(source)

    assert made == [1, 2, 1]
