"""What stands on the screen: cards, markdown, the status line, and the lines of a long transcript."""

from dataclasses import replace

import pytest
from rich.cells import cell_len
from textual.geometry import Size
from textual.strip import Strip

from apps.cli.tests.chat.events import (
    asked,
    called,
    event,
    folded,
    prompt,
    started,
    succeeded,
    text_ended,
)
from fairlead_cli.chat.screen.block_layout import BlockLayout
from fairlead_cli.chat.screen.entry_lines import DrawOptions, EntryLines
from fairlead_cli.chat.screen.markdown_lines import MarkdownLines, make_console, stable_end
from fairlead_cli.chat.screen.side_lines import activity_text
from fairlead_cli.chat.view.ask_text import ask_text, permission_choices, shown_asks
from fairlead_cli.chat.view.call_card import card_body, card_title, duration
from fairlead_cli.chat.view.entries import AnyEntry, CallEntry, TextEntry
from fairlead_cli.chat.view.session_view import SessionView
from fairlead_cli.chat.view.status_line import Surroundings, money, status_line, usage

WIDE = DrawOptions(80)


def call_of(view: SessionView) -> CallEntry:
    call = view.call("call_1")
    assert call is not None
    return call


def plain(strips: list[Strip]) -> list[str]:
    return [strip.text.rstrip() for strip in strips]


def test_a_folded_card_shows_the_beginning_and_an_unfolded_card_everything() -> None:
    text = "\n".join(str(number) for number in range(20))
    call = call_of(folded(started(), *called(), succeeded(text)))
    folded_card, unfolded = card_body(call, is_unfolded=False), card_body(call, is_unfolded=True)

    assert folded_card == (("0", "1", "2"), 17, False)
    assert (len(unfolded.lines), unfolded.hidden) == (20, 0)


def test_an_unfolded_card_shows_the_input_that_its_title_has_no_room_for() -> None:
    script = "for i in 1 2; do\n  echo $i\ndone"
    call = call_of(folded(*called(input_={"command": script, "timeout": 5}), succeeded("1\n2")))

    assert card_body(call, is_unfolded=False).lines == ("1", "2")
    assert card_body(call, is_unfolded=True).lines == (
        "command:",
        "  for i in 1 2; do",
        "    echo $i",
        "  done",
        "timeout: 5",
        "1",
        "2",
    )


def test_a_card_of_a_file_that_was_read_shows_only_its_size() -> None:
    call = call_of(folded(*called(tool="read", input_={"path": "a.py"}), succeeded("1\n2\n3")))

    assert card_body(call, is_unfolded=False) == ((), 3, False)
    assert card_title(call) == "a.py"


def test_a_card_of_a_change_shows_the_change() -> None:
    patch = "--- a\n+++ a\n@@ -1 +1 @@\n-old\n+new"
    structured = {"files": [{"file": "a", "patch": patch}]}
    view = folded(
        *called(tool="edit", input_={"path": "a"}), succeeded("Edited a", structured=structured)
    )
    body = card_body(call_of(view), is_unfolded=False)

    assert (body.lines, body.is_diff) == (("-old", "+new"), True)


@pytest.mark.parametrize(("now_ms", "shown"), [(1500, ""), (4000, "3s"), (126_000, "2m 05s")])
def test_a_running_call_says_how_long_it_runs(now_ms: int, shown: str) -> None:
    assert duration(call_of(folded(*called())), now_ms) == shown


def test_a_card_is_drawn_with_its_state_in_words_or_signs_not_only_in_colour() -> None:
    draw = EntryLines()
    view = folded(*called(), asked())
    waiting = plain(draw.strips(call_of(view), WIDE))
    done = plain(draw.strips(call_of(folded(*called(), succeeded("ok"))), WIDE))
    failed = folded(*called(), succeeded("no", structured={"exit": 2}))

    assert waiting == ["◆ bash ls  waits for you"]
    assert done == ["✓ bash ls  3s", "  │ ok"]
    assert plain(draw.strips(call_of(failed), WIDE))[0] == "✗ bash ls  3s  exit 2"


def test_markdown_is_drawn_without_frames_and_blank_runs() -> None:
    text = "# Title\n\nSome **bold** words.\n\n\n```python\nprint(1)\n```\n\n- one\n- two"
    entry = TextEntry(key="t", message_id="m", text=text, is_open=False)

    assert plain(EntryLines().strips(entry, WIDE)) == [
        "  Title",
        "",
        "  Some bold words.",
        "",
        "    print(1)",
        "",
        "   • one",
        "   • two",
    ]


@pytest.mark.parametrize("width", [8, 20, 40, 80])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    view = folded(
        *prompt("msg_1", "a very long prompt " * 10),
        text_ended("word " * 50 + "`" + "x" * 100 + "`\n\n| a | b |\n|---|---|\n| 1 | 2 |"),
        *called(input_={"command": "x" * 200}),
        succeeded("y" * 300),
    )
    draw = EntryLines()
    for entry in view.entries:
        for is_unfolded in (False, True):
            strips = draw.strips(entry, DrawOptions(width, is_unfolded=is_unfolded))
            assert {strip.cell_length for strip in strips} == {width}


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("one paragraph", 0),
        ("one\n\ntwo", 5),
        ("one\n\n```\na\n\nb", 5),
        ("- item\n\n  more of it", 0),
        ("one\n\n", 0),
    ],
)
def test_a_growing_text_is_final_up_to_its_last_finished_block(text: str, end: int) -> None:
    assert stable_end(text) == end


def test_a_growing_text_is_drawn_as_the_whole_text_would_be() -> None:
    text = "# T\n\nSome words here.\n\n```py\na = 1\n\nb = 2\n```\n\nAnd **more**.\n\n1. x\n2. y"
    growing, whole = MarkdownLines(make_console()), MarkdownLines(make_console())
    lines: list[str] = []
    for end in range(1, len(text) + 1):
        drawn = growing.lines("k", text[:end], 40, is_open=True)
        lines = ["".join(segment.text for segment in line).rstrip() for line in drawn]
    expected = whole.lines("k", text, 40, is_open=False)

    assert lines == ["".join(segment.text for segment in line).rstrip() for line in expected]


CODE = "\n".join(f"value_{number} = {number}  # of many" for number in range(200))


@pytest.mark.parametrize(
    "text",
    [
        f"Here it is:\n```py\n{CODE}\n```\nAnd **more**.\n\nThe end.",
        f"Here:\n\n````\n```\n{CODE}\n~~~\n{CODE}\n````",
        f"```py\n{CODE}\n```\n\n```sh\n{CODE}\n```\n\n- a\n\n  ```\n  x\n  ```\n- b",
    ],
    ids=["between words", "fences in a fence", "two blocks and a list"],
)
def test_long_code_that_grows_is_drawn_in_parts_and_as_the_whole(text: str) -> None:
    growing, whole = MarkdownLines(make_console()), MarkdownLines(make_console())
    drawn, left = growing.lines("k", text[:1], 60, is_open=True), 0
    for end in range(1, len(text) + 1, 97):
        drawn = growing.lines("k", text[:end], 60, is_open=True)
        left = max(left, len(drawn) - growing.final_count("k"))
    drawn = growing.lines("k", text, 60, is_open=True)
    expected = whole.lines("k", text, 60, is_open=False)

    assert left < 60
    assert plain([Strip(line) for line in drawn]) == plain([Strip(line) for line in expected])


def entries(count: int) -> list[AnyEntry]:
    text = "\n\n".join(f"line {number}" for number in range(50))
    return [
        TextEntry(key=f"t{number}", message_id="m", text=text, is_open=False)
        for number in range(count)
    ]


def test_of_ten_thousand_lines_only_the_end_is_drawn() -> None:
    layout = BlockLayout(lambda _entry: WIDE)
    layout.take(entries(100), lines=90)

    assert (len(layout.blocks), layout.is_complete) == (1, False)
    assert layout.strip_at(layout.height - 1).text.strip() == "line 49"

    added = layout.extend(layout.height + 200)
    assert (added, layout.height) == (200, 300)
    assert len(layout.blocks) == 3


def test_an_entry_that_did_not_change_is_not_drawn_again() -> None:
    options = WIDE
    layout = BlockLayout(lambda _entry: options)
    items = entries(3)
    layout.take(items, lines=10_000)
    first = layout.blocks[0].strips
    items[2].revision += 1
    changed = layout.redraw()

    assert changed == 2
    assert layout.blocks[0].strips is first
    options = replace_width(options, 40)
    assert layout.redraw() == 0


def replace_width(options: DrawOptions, width: int) -> DrawOptions:
    return options._replace(width=width)


def test_entries_that_leave_take_their_lines_with_them() -> None:
    layout = BlockLayout(lambda _entry: WIDE)
    items = entries(4)
    layout.take(items, lines=10_000)
    layout.take(items[:2], lines=10_000)

    assert [block.entry.key for block in layout.blocks] == ["t0", "t1"]
    assert layout.block_at(layout.height) is None
    assert layout.strip_at(-5).text == ""


def test_the_status_line_keeps_what_matters_most_when_it_is_narrow() -> None:
    view = SessionView("ses_a", model="sim/fast", agent="build", tokens=12_345, cost=0.0123)
    view.title = "About the harbour"
    around = Surroundings(window=200_000, children_cost=1.0)

    assert status_line(view, around, 100) == (
        "ready · sim/fast · 12k/200k (6%) · $1.01 · build · About the harbour"
    )
    assert status_line(view, around, 20) == "ready · sim/fast"
    assert status_line(view, replace(around, is_away=True), 40).startswith("reconnecting")


def test_the_status_line_says_that_a_sub_agent_asks_or_is_shown() -> None:
    view = folded(started())

    assert status_line(view, Surroundings(is_asked=True), 80).startswith("asks you · sim/fast")
    assert "sub-agent: Esc returns" in status_line(view, Surroundings(is_sub_agent=True), 80)


def test_money_and_tokens_are_short() -> None:
    assert [money(cost) for cost in (0, 0.0025, 0.5, 12)] == ["$0", "$0.0025", "$0.5", "$12.00"]
    assert [usage(5, 0), usage(1500, 8000), usage(2_000_000, 0)] == [
        "5 tokens",
        "1.5k/8.0k (19%)",
        "2.0M tokens",
    ]


def test_a_permission_says_what_is_wanted_and_by_whom() -> None:
    view = folded(*called(input_={"command": "rm x"}), asked())
    [waiting] = shown_asks(view, "explore")
    lines = [line for _, line in ask_text(waiting, None, count=2)]

    assert lines == ["The sub-agent explore wants to run  (1 of 2)", "  rm x"]
    assert [id_ for id_, _, _ in permission_choices(waiting.ask)] == [  # type: ignore[arg-type]
        "once",
        "always",
        "reject",
        "own-words",
    ]


def test_a_permission_shows_what_would_be_written() -> None:
    given = {"path": "/work/a.txt", "content": "one\ntwo\n"}
    ids = {"type": "tool", "messageID": "msg_x", "callID": "call_1"}
    wanted = event(
        "permission.v2.asked", id="per_1", action="edit", resources=["a.txt"], source=ids
    )
    [waiting] = shown_asks(folded(*called(tool="write", input_=given), wanted))

    assert [line for _, line in ask_text(waiting, None, count=1)] == [
        "The model wants to change",
        "  a.txt",
        "  content:",
        "    one",
        "    two",
    ]


def test_prompts_that_wait_take_one_line_each_however_wide_their_letters_are() -> None:
    sending = ["港" * 80, *(f"prompt {number}" for number in range(9))]
    lines = activity_text(folded(), sending, ["notes.txt (1 KiB)"], Size(60, 30)).plain.split("\n")

    assert all(cell_len(line) < 60 for line in lines)
    assert [line.split()[0] for line in lines] == ["sending"] * 4 + ["│", "+"]
    assert len(activity_text(folded(), sending, [], Size(60, 8)).plain.split("\n")) == 2
