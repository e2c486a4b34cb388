"""`edit` replaces exact text in the present content of a file."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_tools.builtin import edit
from fairlead_tools.files.replacement import NotReplaced, replace_text
from services.tools.tests.file_calls import failure_of, required_permissions, run_call, text

EDIT = edit.tool()


def change(old: str, new: str, **more: object) -> dict[str, Any]:
    return {"path": "a.txt", "oldString": old, "newString": new, **more}


async def test_one_occurrence_is_replaced(tmp_path: Path) -> None:
    """L-32, L-37: the result holds a diff and a count; the model sees both sides."""
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\n")

    result = await run_call(EDIT, tmp_path, **change("two", "2"))

    assert (tmp_path / "a.txt").read_text() == "one\n2\nthree\n"
    assert result.structured == {
        "files": [
            {
                "file": "a.txt",
                "status": "modified",
                "patch": "--- a.txt\n+++ a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n",
                "additions": 1,
                "deletions": 1,
            }
        ],
        "replacements": 1,
    }
    assert text(result) == "Edited a.txt: 1 replacement\n- two\n+ 2"


async def test_occurrences_are_counted_without_overlap(tmp_path: Path) -> None:
    """L-32: four letters hold two pairs."""
    (tmp_path / "a.txt").write_text("aaaa")

    result = await run_call(EDIT, tmp_path, **change("aa", "aab", replaceAll=True))

    assert (tmp_path / "a.txt").read_text() == "aabaab"
    assert result.structured["replacements"] == 2


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("x", "x", "oldString and newString are the same; there is nothing to change"),
        ("", "x", "oldString must not be empty; use write to create or overwrite a file"),
        ("no", "x", "oldString was not found in the file; it must match exactly"),
        (
            "one",
            "x",
            "oldString was found 2 times; add lines around it to make it unique, or set replaceAll",
        ),
    ],
)
async def test_each_refusal_has_its_own_words(
    tmp_path: Path, old: str, new: str, reason: str
) -> None:
    """L-33: a refused edit changes nothing."""
    (tmp_path / "a.txt").write_text("one one")

    assert await failure_of(EDIT, tmp_path, **change(old, new)) == f"Unable to edit a.txt: {reason}"
    assert (tmp_path / "a.txt").read_text() == "one one"


async def test_text_is_not_matched_loosely(tmp_path: Path) -> None:
    """L-38: different white space is different text, and nothing is formatted afterwards."""
    (tmp_path / "a.txt").write_text("if x:\n\treturn\n")

    assert "not found" in await failure_of(EDIT, tmp_path, **change("if x:\n    return", "pass"))
    await run_call(EDIT, tmp_path, **change("\treturn", "  return   "))
    assert (tmp_path / "a.txt").read_text() == "if x:\n  return   \n"


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\r\nb\r\n", "a\nb", "c\nd", b"c\r\nd\r\n"),
        (b"a\nb\n", "a\r\nb", "c\r\nd", b"c\nd\n"),
        (b"\xef\xbb\xbfa\r\nb", "a", "x\ny", b"\xef\xbb\xbfx\r\ny\r\nb"),
        (b"\xef\xbb\xbfa", "a", "\ufeffb", b"\xef\xbb\xbfb"),
        (b"a\nb\nc\r\nd\r\n", "c\nd", "x\ny", b"a\nb\nx\r\ny\r\n"),
    ],
)
async def test_line_breaks_and_marks_stay_those_of_the_file(
    tmp_path: Path, before: bytes, old: str, new: str, after: bytes
) -> None:
    """L-34: the line breaks in the model's input do not matter."""
    (tmp_path / "a.txt").write_bytes(before)

    await run_call(EDIT, tmp_path, **change(old, new))

    assert (tmp_path / "a.txt").read_bytes() == after


plain = st.text("ab \n", max_size=12)


@given(text=plain, old=plain, new=plain)
def test_a_file_of_one_kind_of_line_break_stays_one(text: str, old: str, new: str) -> None:
    """L-34: the same edit has the same effect under other line breaks."""

    def outcome(text: str, old: str, new: str) -> tuple[str, int] | str:
        try:
            return replace_text(text, old, new, everywhere=True)
        except NotReplaced as error:
            return str(error)

    twin = outcome(text.replace("\n", "\r\n"), old, new)
    same = outcome(text, old.replace("\n", "\r\n"), new)

    assert same == outcome(text, old, new) or old == new or old.replace("\n", "\r\n") == new
    if isinstance(twin, tuple) and "\n" in text:
        assert (twin[0].replace("\r\n", "\n"), twin[1]) == outcome(text, old, new)
        assert twin[0].count("\n") == twin[0].count("\r\n")
    if old and old != new and "\r" not in text and old in text:
        assert outcome(text, old, new) == (text.replace(old, new), text.count(old))


async def test_asking_reveals_nothing_of_the_file(tmp_path: Path) -> None:
    """L-35: the required permissions do not depend on the content of the file."""
    (tmp_path / "a.txt").write_text("here")
    with_text = await required_permissions(EDIT, tmp_path, **change("here", "x"))
    (tmp_path / "a.txt").write_text("gone")
    without_text = await required_permissions(EDIT, tmp_path, **change("here", "x"))
    (tmp_path / "a.txt").unlink()
    os.mkfifo(tmp_path / "a.txt")

    assert (
        await required_permissions(EDIT, tmp_path, **change("here", "x"))
        == without_text
        == with_text
    )
    assert with_text[0].action == "edit"
    assert with_text[0].resources == ("a.txt",)
    assert with_text[0].save == ("*",)
    assert with_text[0].metadata is not None
    assert "-here" in with_text[0].metadata["diff"]


async def test_a_file_that_changes_under_the_edit_is_to_be_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L-36: the edit does not overwrite the text of another writer."""
    file = tmp_path / "a.txt"
    file.write_text("one")

    def replace_after_other_writer(
        text: str, old: str, new: str, *, everywhere: bool
    ) -> tuple[str, int]:
        file.write_text("one and more")
        return replace_text(text, old, new, everywhere=everywhere)

    monkeypatch.setattr(edit, "replace_text", replace_after_other_writer)
    message = await failure_of(EDIT, tmp_path, **change("one", "two"))

    assert message == "a.txt has changed since it was read. Read it again, then edit."
    assert file.read_text() == "one and more"


async def test_what_the_model_sees_of_an_edit_is_short(tmp_path: Path) -> None:
    """L-37: the model sees at most six lines a side with 240 characters each."""
    (tmp_path / "a.txt").write_text("x\n" * 10 + "y" * 1000)

    result = await run_call(
        EDIT, tmp_path, **change("x\n" * 10 + "y" * 1000, "z" * 1000 + "\nz" * 9)
    )

    lines = text(result).split("\n")[1:]
    assert [line[0] for line in lines] == ["-"] * 6 + ["+"] * 6
    assert lines[5] == "- ... (6 more lines)"
    assert all(len(line) <= 242 for line in lines)
    assert lines[6] == f"+ {'z' * 237}..."


@pytest.mark.parametrize("raw", [b"caf\xe9", None])
async def test_what_is_no_text_or_not_there_is_not_edited(
    tmp_path: Path, raw: bytes | None
) -> None:
    """L-33: such a file gives the generic error."""
    if raw is not None:
        (tmp_path / "a.txt").write_bytes(raw)

    assert await failure_of(EDIT, tmp_path, **change("caf", "x")) == "Unable to edit a.txt"


async def test_a_huge_file_is_not_edited(tmp_path: Path) -> None:
    """L-33: an edit would hold the whole file in memory."""
    with (tmp_path / "a.txt").open("wb") as file:
        file.truncate(1 << 40)

    assert await failure_of(EDIT, tmp_path, **change("a", "b")) == "Unable to edit a.txt"


async def test_an_edit_is_never_repeated_by_itself(tmp_path: Path) -> None:
    """L-36: the new text may contain the old one, so a second run would change more."""
    (tmp_path / "a.txt").write_text("a")
    await run_call(EDIT, tmp_path, **change("a", "aa", replaceAll=True))

    assert EDIT.retry == "once"
    assert (tmp_path / "a.txt").read_text() == "aa"


async def test_of_many_edits_of_one_file_none_is_lost(tmp_path: Path) -> None:
    """L-08: edits of one file wait for each other."""
    names = [f"<{number}>" for number in range(12)]
    (tmp_path / "a.txt").write_text("\n".join(names))

    await asyncio.gather(*(run_call(EDIT, tmp_path, **change(name, f"{name}!")) for name in names))

    assert (tmp_path / "a.txt").read_text().split("\n") == [f"{name}!" for name in names]


def test_many_line_breaks_take_linear_time() -> None:
    """B10: 4 MB of line breaks would take hours if each one were tried by itself."""
    breaks = "\r\n" * 2_000_000

    with pytest.raises(NotReplaced, match="was not found"):
        replace_text(breaks, "\n" * 1_000_000 + "end", "x", everywhere=False)
    assert replace_text(f"{breaks}end", "\nend", "\nx", everywhere=False) == (f"{breaks}x", 1)


def test_a_single_carriage_return_is_found_as_it_is() -> None:
    """L-33: only a whole line break matches either kind."""
    assert replace_text("a\r\nb\r\n", "\r", "", everywhere=True) == ("a\nb\n", 2)
    with pytest.raises(NotReplaced, match="was not found"):
        replace_text("a\r\nb", "\r\r\n", "x", everywhere=False)
