"""Lays the entries of a transcript out as lines. Only the end is drawn until somebody looks further up."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

from textual.strip import Strip

from fairlead_cli.chat.screen.entry_lines import DrawOptions, EntryLines, gap_before
from fairlead_cli.chat.view.entries import AnyEntry

EMPTY: Final = Strip([])


@dataclass(slots=True)
class DrawnBlock:
    """One drawn entry, with the empty lines before it."""

    entry: AnyEntry
    gap: int
    stamp: tuple[int, DrawOptions] | None = None
    strips: list[Strip] = field(default_factory=list)

    @property
    def height(self) -> int:
        return self.gap + len(self.strips)


class BlockLayout:
    """The drawn entries, and the line at which each of them begins."""

    def __init__(self, options_of: Callable[[AnyEntry], DrawOptions]) -> None:
        self._options_of = options_of
        self._draw = EntryLines()
        self._entries: Sequence[AnyEntry] = ()
        self._first = 0
        """The first entry that is drawn."""
        self.blocks: list[DrawnBlock] = []
        self.starts: list[int] = [0]

    @property
    def height(self) -> int:
        """How many lines there are."""
        return self.starts[-1]

    @property
    def is_complete(self) -> bool:
        """Whether every entry is drawn."""
        return self._first == 0

    def clear(self) -> None:
        """Forget everything."""
        self._entries, self._first, self.blocks, self.starts = (), 0, [], [0]

    def take(self, entries: Sequence[AnyEntry], *, lines: int) -> None:
        """Take entries, and draw at least so many lines at the end. What stays is not drawn again."""
        old = {block.entry.key: block for block in self.blocks}
        first_key = self.blocks[0].entry.key if self.blocks else None
        keys = [entry.key for entry in entries]
        self._entries = entries
        self._first = keys.index(first_key) if first_key in keys else len(keys)
        self.blocks = [
            old.get(entry.key) or DrawnBlock(entry, 0) for entry in self._entries[self._first :]
        ]
        for index, block in enumerate(self.blocks, start=self._first):
            block.gap = gap_before(block.entry, entries[index - 1] if index else None)
        self.redraw()
        self.extend(lines)

    def extend(self, lines: int) -> int:
        """Draw earlier entries until there are so many lines. Says how many lines were added."""
        added: list[DrawnBlock] = []
        count = 0
        while self._first > 0 and self.height + count < lines:
            self._first -= 1
            before = self._entries[self._first - 1] if self._first else None
            block = DrawnBlock(self._entries[self._first], 0)
            block.gap = gap_before(block.entry, before)
            self._draw_block(block)
            count += block.height
            added.append(block)
        if added:
            self.blocks = [*reversed(added), *self.blocks]
            self._measure()
        return count

    def redraw(self) -> int | None:
        """Draw what changed. Says the index of the first such block; None if nothing changed."""
        first: int | None = None
        for index, block in enumerate(self.blocks):
            if block.stamp != (block.entry.revision, self._options_of(block.entry)):
                self._draw_block(block)
                first = index if first is None else first
        self._measure()
        return first

    def block_at(self, line: int) -> DrawnBlock | None:
        """The block that a line belongs to."""
        index = bisect_right(self.starts, line) - 1
        return self.blocks[index] if 0 <= index < len(self.blocks) else None

    def strip_at(self, line: int) -> Strip:
        """What stands in a line; an empty strip where nothing does."""
        index = bisect_right(self.starts, line) - 1
        if not 0 <= index < len(self.blocks):
            return EMPTY
        block = self.blocks[index]
        inside = line - self.starts[index] - block.gap
        return block.strips[inside] if inside >= 0 else EMPTY

    def _draw_block(self, block: DrawnBlock) -> None:
        options = self._options_of(block.entry)
        block.strips = self._draw.strips(block.entry, options)
        block.stamp = (block.entry.revision, options)

    def _measure(self) -> None:
        self.starts = list(accumulate((block.height for block in self.blocks), initial=0))
