"""Patches: their grammar, how lines match, and the text they produce."""

import difflib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_tools.files.diff import PATCH_LENGTH_MAX, diff
from fairlead_tools.files.patch import (
    Add,
    Chunk,
    Delete,
    LinesNotFound,
    MalformedPatch,
    Mark,
    Update,
    apply_chunks,
    parse_patch,
)

WHOLE = """\
*** Begin Patch
*** Add File: new.txt
+one
+
+two
*** Delete File: old.txt
*** Update File: some.txt
*** Move to: sub/other.txt
@@ def f():
 stays
-goes
+comes
*** End of File
*** Update File: more.txt
-a
+b
@@
+c
*** End Patch"""

PARSED = (
    Add("new.txt", "one\n\ntwo\n"),
    Delete("old.txt"),
    Update(
        "some.txt",
        (Chunk(((" ", "stays"), ("-", "goes"), ("+", "comes")), "def f():", last=True),),
        "sub/other.txt",
    ),
    Update("more.txt", (Chunk((("-", "a"), ("+", "b"))), Chunk((("+", "c"),)))),
)


def update(body: str) -> tuple[Chunk, ...]:
    (hunk,) = parse_patch(f"*** Begin Patch\n*** Update File: a\n{body}\n*** End Patch")
    assert isinstance(hunk, Update)
    return hunk.chunks


@pytest.mark.parametrize(
    "text",
    [
        WHOLE,
        f"\n  {WHOLE}\n\n",
        f"cat <<'EOF'\n{WHOLE}\nEOF",
        f'<<"END_1"\n{WHOLE}\nEND_1\n',
        f"<<EOF\n{WHOLE}\nEOF\n",
        WHOLE.replace("\n", "\r\n"),
        WHOLE.replace("*** Delete", "\n*** Delete"),
    ],
)
def test_a_patch_is_read_whatever_is_around_it(text: str) -> None:
    """L-39: all markers are understood, and a here-document around the patch is removed."""
    assert parse_patch(text) == PARSED


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the first line"),
        ("hello", "the first line"),
        ("*** Begin Patch\n*** Delete File: a", "the last line"),
        ("*** Begin Patch\n*** End Patch", "changes no file"),
        ("*** Begin Patch\nhello\n*** End Patch", "line 2 begins no file change: 'hello'"),
        ("*** Begin Patch\n*** Delete File:\n*** End Patch", "line 2 names no file"),
        ("*** Begin Patch\n*** Add File: a\nx\n*** End Patch", "line 3 begins no file change"),
        ("*** Begin Patch\n*** Update File: a\n*** End Patch", "changes nothing"),
        ("*** Begin Patch\n*** Update File: a\n@@\n*** End Patch", "the last chunk is empty"),
        (
            "*** Begin Patch\n*** Update File: a\n@@\n@@\n-x\n*** End Patch",
            "before line 4 is empty",
        ),
        ("*** Begin Patch\n*** Update File: a\n@@\n?x\n*** End Patch", "line 4 begins with none"),
        ("*** Begin Patch\n*** Update File: a\n*** Move to:\n*** End Patch", "to move to"),
        (
            "*** Begin Patch\n*** Update File: a\n*** End of File\n*** End Patch",
            "line 3 ends a chunk that has no lines",
        ),
    ],
)
def test_what_is_no_patch_is_refused_with_its_place(text: str, reason: str) -> None:
    """L-40: the error names the line, and nothing is changed."""
    with pytest.raises(MalformedPatch, match=reason.replace("?", r"\?")):
        parse_patch(text)


@pytest.mark.parametrize(
    "line", ["x = 'a-b'", "x = 'a-b'   ", "   x = 'a-b'", "  x = \u2018a\u2014b\u2019 "]
)
def test_lines_are_found_the_strictest_likeness_first(line: str) -> None:
    """L-41: exact text, then without trailing space, then stripped, then plain punctuation."""
    chunks = update("@@\n-x = 'a-b'\n+y")

    assert apply_chunks(f"before\n{line}\nafter\n", chunks) == "before\ny\nafter\n"


def test_an_exact_line_is_preferred_to_an_earlier_similar_one() -> None:
    """L-41: likeness counts more than position."""
    assert apply_chunks("  x\nx\n", update("@@\n-x\n+y")) == "  x\ny\n"


def test_chunks_are_found_one_after_the_other() -> None:
    """L-41: the search starts where the last chunk ended, or at the context line."""
    text = "a\nx\nb\nx\nc\nx\n"

    assert apply_chunks(text, update("@@\n-x\n+1\n@@\n-x\n+2")) == "a\n1\nb\n2\nc\nx\n"
    assert apply_chunks(text, update("@@ b\n-x\n+1\n@@ c\n-x\n+2")) == "a\nx\nb\n1\nc\n2\n"
    with pytest.raises(LinesNotFound, match="cannot find these lines:\nb"):
        apply_chunks(text, update("@@\n-c\n+1\n@@\n-b\n+2"))
    with pytest.raises(LinesNotFound, match="cannot find the line 'z'"):
        apply_chunks(text, update("@@ z\n-x\n+1"))


def test_a_chunk_for_the_end_of_the_file_is_tried_there_first() -> None:
    """L-41: the rest of the file is searched when the end differs."""
    chunks = update("@@\n-x\n+y\n*** End of File")

    assert apply_chunks("x\nb\nx\n", chunks) == "x\nb\ny\n"
    assert apply_chunks("x\nb\n", chunks) == "y\nb\n"


def test_a_chunk_that_only_adds_is_for_the_end() -> None:
    """L-42: its context line does not matter, and the next chunk searches from the same place."""
    assert apply_chunks("a\nb\n", update("@@\n+c")) == "a\nb\nc\n"
    assert apply_chunks("a\nb\n", update("@@ a\n+c\n@@\n-b\n+B")) == "a\nB\nc\n"
    assert apply_chunks("", update("@@\n+c")) == "c\n"


def test_what_a_patch_only_mentions_stays_as_it_is() -> None:
    """L-41: spaces, quotes and line breaks of the file stay, also for new lines."""
    text = "  \u2018one\u2019\t\r\ntwo\r\nthree\r\n"

    assert (
        apply_chunks(text, update("@@\n 'one'\n-two\n+2\n+2a"))
        == "  \u2018one\u2019\t\r\n2\r\n2a\r\nthree\r\n"
    )


def test_a_file_without_a_last_line_break_stays_so() -> None:
    """L-49: only added files get a final line break."""
    assert apply_chunks("a\nb", update("@@\n-b\n+c")) == "a\nc"
    assert apply_chunks("a\r\nb", update("@@\n+c")) == "a\r\nb\r\nc"


lines = st.lists(st.sampled_from(["a", "b", "  a", "c "]), max_size=12)


@given(before=lines, after=lines, context=st.integers(0, 3))
def test_a_patch_made_of_two_texts_makes_one_of_the_other(
    before: list[str], after: list[str], context: int
) -> None:
    """L-39, L-41: full context applies exactly; less context applies or fails."""
    groups = difflib.SequenceMatcher(None, before, after, autojunk=False)
    diff_lines: list[tuple[Mark, str]] = []
    for _, a, b, c, d in groups.get_opcodes():
        if before[a:b] == after[c:d]:
            diff_lines += [(" ", line) for line in before[a:b]]
        else:
            diff_lines += [("-", line) for line in before[a:b]] + [
                ("+", line) for line in after[c:d]
            ]
    text, target = ("".join(f"{line}\n" for line in side) for side in (before, after))

    if diff_lines:
        assert apply_chunks(text, (Chunk(tuple(diff_lines)),)) == target
        body = "\n".join(mark + line for mark, line in diff_lines)
        if body.strip():
            assert update(f"@@\n{body}") == (Chunk(tuple(diff_lines)),)
    removal = Chunk(tuple(("-", line) for line in before[:context]))
    if removal.lines:
        assert apply_chunks(text, (removal,)) == "".join(f"{line}\n" for line in before[context:])


@given(before=st.text("ab\n", max_size=30), after=st.text("ab\n", max_size=30))
def test_a_diff_tells_how_many_lines_came_and_went(before: str, after: str) -> None:
    """L-37, L-49: the counts agree with the lines of the diff."""
    file_diff = diff("f", before, after)

    old = [line[1:] for line in file_diff.patch.split("\n")[2:] if line[:1] in {" ", "-"}]
    additions = [line for line in file_diff.patch.split("\n")[2:] if line[:1] == "+"]
    assert file_diff.additions == len(additions)
    assert all(line in before.split("\n") for line in old)
    assert (file_diff.additions, file_diff.deletions) != (0, 0) or before == after


def test_a_diff_of_large_texts_is_bounded() -> None:
    """L-37: both the time and the size have a limit."""
    file_diff = diff("f", "".join(f"{n}\n" for n in range(100_000)), "x\n" * 100_000)

    assert (file_diff.additions, file_diff.deletions) == (100_000, 100_000)
    assert len(file_diff.patch) < PATCH_LENGTH_MAX + 100


@given(st.lists(st.sampled_from("ab"), max_size=30), st.lists(st.sampled_from("ab"), min_size=1))
def test_the_first_place_is_found_where_lines_repeat(have: list[str], want: list[str]) -> None:
    """B10: the linear search finds what a simple search finds."""
    text = "".join(f"{line}\n" for line in have)
    chunk = Chunk((*((" ", line) for line in want), ("+", "new")))
    places = [at for at in range(len(have)) if have[at : at + len(want)] == want]

    if not places:
        with pytest.raises(LinesNotFound):
            apply_chunks(text, (chunk,))
        return
    end = places[0] + len(want)
    expected = [*have[:end], "new", *have[end:]]
    assert apply_chunks(text, (chunk,)) == "".join(f"{line}\n" for line in expected)


def test_a_hostile_patch_takes_time_in_proportion_to_its_size() -> None:
    """B10: a thread that looks for lines cannot be stopped, so its work is bounded."""
    text = "x\n" * 200_000
    long = Chunk((*((" ", "x") for _ in range(20_000)), ("-", "y")))

    start = time.process_time()
    with pytest.raises(LinesNotFound, match="cannot find these lines"):
        apply_chunks(text, (long,))
    with pytest.raises(LinesNotFound, match="split the patch"):
        apply_chunks(text, (Chunk((("-", "y"),)),) * 200)

    assert time.process_time() - start < 20
