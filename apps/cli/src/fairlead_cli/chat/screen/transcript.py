"""The transcript on the screen: it scrolls, follows the end, and unfolds cards."""

import time
from itertools import pairwise
from typing import ClassVar, Final

from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from typing_extensions import override

from fairlead_cli.chat.screen.block_layout import BlockLayout
from fairlead_cli.chat.screen.entry_lines import DrawOptions
from fairlead_cli.chat.view.entries import AnyEntry, CallEntry, ReasoningEntry, SummaryEntry
from fairlead_cli.chat.view.session_view import SessionView
from fairlead_schema.ids import SessionId

_PAGES_DRAWN: Final = 3
_CHUNK_LINES: Final = 200
_ROOM_LINES: Final = 64
CARD_KEYS: Final = frozenset({"o", "space"})
"""Letters that are for cards while the transcript has the focus."""


class TranscriptPane(ScrollView, can_focus=True):
    """Shows a view. `sync` brings the screen in line with it."""

    FOCUS_ON_CLICK = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "select(-1)", show=False),
        Binding("down", "select(1)", show=False),
        Binding("enter,space", "unfold", show=False),
        Binding("o", "open_child", show=False),
    ]

    class ChildOpened(Message):
        """A person wants to see the session of a sub-agent."""

        def __init__(self, session_id: SessionId) -> None:
            super().__init__()
            self.session_id = session_id

    def __init__(self, view: SessionView) -> None:
        super().__init__(id="transcript")
        self.view = view
        self._shape: tuple[int, int, int] | None = None
        self._drawn = BlockLayout(self._options)
        self._unfolded: set[str] = set()
        self._is_all_unfolded = False
        self._selected: str | None = None
        self._follows = True
        self._height = 0

    def show(self, view: SessionView) -> None:
        """Show another session, from its end."""
        self.view, self._shape, self._selected, self._follows = view, None, None, True
        self._unfolded.clear()
        self._drawn.clear()
        self.sync()

    def sync(self) -> None:
        """Draw what changed since the last call."""
        if not self.size.width or not self.size.height:
            return
        shape = (id(self.view), self.view.shape, self._width)
        if shape != self._shape:
            self._shape = shape
            self._drawn.take(self.view.shown, lines=self.size.height * _PAGES_DRAWN)
            self._place(0)
        elif (changed := self._drawn.redraw()) is not None:
            self._place(changed)

    def unfold_all(self) -> None:
        """Show every card in full, or every card in short again."""
        self._is_all_unfolded = not self._is_all_unfolded
        self._unfolded.clear()
        self.sync()

    def follow_end(self) -> None:
        """Go to the end, and stay there while the session goes on."""
        self._follows = True
        self.scroll_end(animate=False, immediate=True)

    def page(self, direction: int) -> None:
        """Go up or down by a page."""
        target = self.scroll_offset.y + direction * max(1, self.size.height - 2)
        self.scroll_to(y=target, animate=False, immediate=True)

    @property
    def _width(self) -> int:
        return self.scrollable_content_region.width

    def _options(self, entry: AnyEntry) -> DrawOptions:
        is_running = isinstance(entry, CallEntry) and not entry.ended and entry.began > 0
        return DrawOptions(
            self._width,
            is_unfolded=self._is_all_unfolded != (entry.key in self._unfolded),
            is_selected=self.has_focus and entry.key == self._selected,
            now_ms=int(time.time()) * 1000 if is_running else 0,
        )

    def _place(self, changed: int) -> None:
        """Scroll to the end if a person is there, and draw the lines from the changed block on."""
        height, before = self._drawn.height, self._height
        self._height = height
        is_following = self._follows
        self._reserve()
        if is_following:
            self.scroll_to(y=max(0, height - self.size.height), animate=False, immediate=True)
        if height != before:
            self.refresh()
            return
        top = max(0, self._drawn.starts[changed] - self.scroll_offset.y)
        if top < self.size.height:
            self.refresh(Region(0, top, self.size.width, self.size.height - top))

    def _reserve(self) -> None:
        """Make room for the lines, and for some more: other room is another layout of the whole screen."""
        height = self._drawn.height
        room = height if height <= self.size.height else -(-height // _ROOM_LINES) * _ROOM_LINES
        self.virtual_size = Size(self._width, room)

    @property
    @override
    def max_scroll_y(self) -> int:
        """The lines end before the room does."""
        return max(0, self._drawn.height - self.size.height)

    @override
    def render_lines(self, crop: Region) -> list[Strip]:
        """The lines as they are kept. The library's own way would make each line anew at every scroll."""
        first, width, selection = self.scroll_offset.y, self.size.width, self.text_selection
        strips = [self._strip_at(first + y, width, selection) for y in crop.line_range]
        for line_filter in self.get_line_filters():
            background = self.background_colors[1]
            strips = [strip.apply_filter(line_filter, background) for strip in strips]
        if crop.column_span != (0, width):
            strips = [strip.crop(*crop.column_span) for strip in strips]
        return strips

    @override
    def render_line(self, y: int) -> Strip:
        return self._strip_at(self.scroll_offset.y + y, self.size.width, self.text_selection)

    def _strip_at(self, number: int, width: int, selection: Selection | None) -> Strip:
        strip = self._drawn.strip_at(number)
        if selection is not None and (span := selection.get_span(number)) is not None:
            strip = self._highlight(strip, *span)
        return strip.adjust_cell_length(width).apply_offsets(0, number)

    def _highlight(self, strip: Strip, start: int, end: int) -> Strip:
        style = self.screen.get_component_rich_style("screen--selection")
        stop = strip.cell_length if end == -1 else min(end, strip.cell_length)
        start = min(start, stop)
        inside = Segment.apply_style(strip.crop(start, stop), post_style=style)
        return Strip.join([strip.crop(0, start), Strip(list(inside)), strip.crop(stop)])

    @override
    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        lines = (self._drawn.strip_at(line).text.rstrip() for line in range(self._drawn.height))
        return selection.extract("\n".join(lines)), "\n"

    @override
    def selection_updated(self, selection: Selection | None) -> None:
        self.refresh()

    @override
    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        self._follows = new_value >= self.max_scroll_y - 1
        if self.show_vertical_scrollbar:
            # At the end the bar stays at its own end, and is not drawn for each line that comes.
            end = self.virtual_size.height - self.size.height
            self.vertical_scrollbar.position = end if self._follows else new_value
        self.refresh(self.size.region)
        if new_value < self.size.height and not self._drawn.is_complete:
            self.call_next(self._load_earlier)

    def _load_earlier(self) -> None:
        """Draw earlier entries above. What a person reads stays where it is."""
        added = self._drawn.extend(self._drawn.height + _CHUNK_LINES)
        if added:
            self._height = self._drawn.height
            self._reserve()
            self.scroll_to(y=self.scroll_offset.y + added, animate=False, immediate=True)
            self.refresh()

    def on_resize(self, _event: events.Resize) -> None:
        self.sync()
        if self._follows:
            self.follow_end()

    def on_focus(self) -> None:
        """Choose the last card, if none is chosen."""
        keys = self._card_keys()
        if keys and self._selected not in keys:
            self._selected = keys[-1]
        self.sync()

    def on_blur(self) -> None:
        self.sync()

    def on_click(self, event: events.Click) -> None:
        """A click on a card folds or unfolds it."""
        block = self._drawn.block_at(event.y + self.scroll_offset.y)
        if block is not None and self.text_selection is None and _can_unfold(block.entry):
            self._selected = block.entry.key
            self.action_unfold()

    def action_select(self, direction: int) -> None:
        """Choose the card before or after, and bring it into sight."""
        keys = self._card_keys()
        if not keys:
            self.page(direction)
            return
        at = keys.index(self._selected) if self._selected in keys else len(keys)
        self._selected = keys[min(max(at + direction, 0), len(keys) - 1)]
        self.sync()
        drawn = self._drawn
        for block, (start, stop) in zip(drawn.blocks, pairwise(drawn.starts), strict=True):
            if block.entry.key == self._selected:
                region = Region(0, start, 1, min(stop - start, self.size.height))
                self.scroll_to_region(region, animate=False, immediate=True)

    def action_unfold(self) -> None:
        """Fold or unfold the chosen card."""
        if self._selected is not None:
            self._unfolded ^= {self._selected}
            self.sync()

    def action_open_child(self) -> None:
        """Show the session of the chosen sub-agent."""
        entry = self.view.by_key.get(self._selected or "")
        if isinstance(entry, CallEntry) and entry.child is not None:
            self.post_message(self.ChildOpened(entry.child))

    def _card_keys(self) -> list[str]:
        return [block.entry.key for block in self._drawn.blocks if _can_unfold(block.entry)]


def _can_unfold(entry: AnyEntry) -> bool:
    return isinstance(entry, CallEntry | ReasoningEntry | SummaryEntry)
