"""The lines around the composer: what happens now, what waits, and the status."""

import time
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from rich.text import Text
from textual.geometry import Size
from textual.widgets import Static

from fairlead_cli.chat.view.call_card import card_title
from fairlead_cli.chat.view.entries import CallEntry
from fairlead_cli.chat.view.plain_text import one_line
from fairlead_cli.chat.view.session_view import SessionView
from fairlead_cli.chat.view.status_line import Surroundings, is_almost_full, status_line

_SPINNER: Final = "◐◓◑◒"
_WAITING_MAX: Final = 4
_STYLES: Final = {
    "ready": "green",
    "working": "cyan",
    "stopping": "yellow",
    "asks you": "bold yellow",
    "reconnecting": "bold yellow",
    "waiting": "yellow",
}


class Hint(StrEnum):
    """What stands in the place of the status line for a while."""

    CARDS = "Arrows choose a card · Enter unfolds · o opens a sub-agent · Esc returns"
    LEAVE = "Ctrl-C again leaves. The session goes on."
    LEAVE_UNSENT = "A prompt is not sent yet. Ctrl-C again leaves without it."
    NO_SHELL = "Ctrl-Z needs a shell that started this program as a job."


class SideText(Static):
    """Some lines that change often. Only another number of lines moves what is around them."""

    def __init__(self, *, id: str) -> None:  # noqa: A002 - as everywhere in the library
        super().__init__(id=id)
        self._shown = Text()

    def put(self, text: Text) -> None:
        """Show a text, if it is another one. Without a text nothing is there."""
        if text == self._shown:
            return
        lines = self._shown.plain.count("\n"), bool(self._shown)
        self._shown = text
        is_moved = lines != (text.plain.count("\n"), bool(text)) or len(text) > self.size.width
        self.display = bool(text)
        self.update(text, layout=is_moved)


def activity_text(
    view: SessionView, sending: Sequence[str], attachments: Sequence[str], size: Size
) -> Text:
    """What the session does now, which prompts wait, and what is attached; empty at rest."""
    width, shown_max = size.width, min(_WAITING_MAX, max(1, size.height // 6))
    lines: list[Text] = []
    if view.activity != "resting" and not view.asks:
        spin = _SPINNER[int(time.monotonic() * 2) % len(_SPINNER)]
        doing = "Stopping" if view.activity == "stopping" else _doing(view)
        line = Text.assemble((f"{spin} ", "cyan"), (one_line(doing, max(10, width - 20)), "dim"))
        lines.append(_shorten(line.append("  Esc interrupts", style="dim"), width))
    elif view.reason:
        lines.append(Text(f"! {one_line(view.reason, width * 2)}", style="yellow"))
    elif view.inbox and not view.asks:
        lines.append(Text("! /resume runs what waits, /drop withdraws the last", style="yellow"))
    pending = [
        ("later" if item.delivery == "queue" else "next", item.text) for item in view.inbox.values()
    ]
    pending += [("sending", text) for text in sending]
    for when, text in pending[:shown_max]:
        lines.append(_shorten(Text(f"{when:>7} │ {one_line(text, width)}", style="dim"), width))
    if len(pending) > shown_max:
        lines.append(Text(f"        │ and {len(pending) - shown_max} more", style="dim"))
    if attachments:
        lines.append(_shorten(Text(f"+ {', '.join(attachments)}", style="cyan"), width))
    return Text("\n").join(lines)


def _shorten(line: Text, width: int) -> Text:
    """The line in so many cells: a Chinese character takes two of them."""
    line.truncate(max(1, width - 1), overflow="ellipsis")
    return line


def status_text(view: SessionView, around: Surroundings, hint: str, width: int) -> Text:
    """The status line, or a hint in its place."""
    if hint:
        return Text(one_line(hint, width - 2), style="bold")
    line = status_line(view, around, width - 2)
    text = Text(line, style="dim", no_wrap=True)
    state = line.partition(" · ")[0]
    text.stylize(f"not dim {_STYLES.get(state, '')}", 0, len(state))
    if is_almost_full(view.tokens, around.window):
        text.append("  /compact?", style="yellow")
    return text


def _doing(view: SessionView) -> str:
    running = [
        entry for entry in view.entries[-8:] if isinstance(entry, CallEntry) and not entry.ended
    ]
    if view.todo:
        return view.todo
    if running and running[-1].state != "writing":
        return f"{running[-1].tool} {card_title(running[-1])}"
    return "Working"
