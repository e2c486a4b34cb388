"""A list in front of everything else: sessions, models, agents, help."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar, Final, NamedTuple, TypeAlias

from rich.cells import cell_len
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option
from typing_extensions import override

from fairlead_cli.chat.view.plain_text import clean
from fairlead_client import ClientError, Refused

LABEL_WIDTH: Final = 48
LABEL_WIDTH_MIN: Final = 24
FIND_AFTER_S: Final = 0.2
"""A person who types goes on typing: the server is asked after a pause."""


class PickerItem(NamedTuple):
    """One thing to choose."""

    id: str
    label: str
    note: str = ""


FindItems: TypeAlias = Callable[[str], Awaitable[Sequence[PickerItem]]]


class Picker(ModalScreen[str | None]):
    """Chooses one item. Typing narrows the list. Esc chooses nothing."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c", "dismiss(None)", show=False, priority=True),
        Binding("up", "move(-1)", show=False, priority=True),
        Binding("down", "move(1)", show=False, priority=True),
        Binding("pageup", "page(-1)", show=False, priority=True),
        Binding("pagedown", "page(1)", show=False, priority=True),
    ]

    def __init__(
        self, title: str, items: Sequence[PickerItem], find: FindItems | None = None
    ) -> None:
        """`find` finds more items for what a person types."""
        super().__init__()
        self._title = title
        self._items = {item.id: item for item in items}
        self._find = find

    @override
    def compose(self) -> ComposeResult:
        with Vertical(id="picker"):
            yield Static(self._title, id="picker-title", markup=False)
            yield Input(placeholder="type to search", id="picker-search", compact=True)
            yield OptionList(id="picker-list", compact=True)

    def on_mount(self) -> None:
        self._fill("")

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show what fits."""
        self._fill(event.value)
        if self._find is not None and event.value.strip():
            self.run_worker(self._find_more(self._find, event.value), exclusive=True)

    def on_input_submitted(self, _event: Input.Submitted) -> None:
        """Choose what is highlighted."""
        choices = self.query_one(OptionList)
        option = choices.highlighted_option
        if option is not None and not option.disabled:
            self._end(option.id)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Choose by mouse."""
        self._end(event.option_id)

    def on_key(self, event: events.Key) -> None:
        """Keep the keys in the search field."""
        search = self.query_one(Input)
        if event.is_printable and not search.has_focus:
            search.focus()

    def action_move(self, direction: int) -> None:
        """Go up or down in the list."""
        choices = self.query_one(OptionList)
        if choices.option_count:
            choices.highlighted = ((choices.highlighted or 0) + direction) % choices.option_count

    def action_page(self, direction: int) -> None:
        """Go up or down in the list by a page."""
        choices = self.query_one(OptionList)
        page = choices.action_page_up if direction < 0 else choices.action_page_down
        page()  # type: ignore[no-untyped-call]

    async def _find_more(self, find: FindItems, query: str) -> None:
        await asyncio.sleep(FIND_AFTER_S)
        try:
            found = await find(query.strip())
        except (Refused, ClientError):
            return
        new = {item.id: item for item in found if item.id not in self._items}
        if new:
            self._items |= new
            self._fill(query)

    def _end(self, chosen: str | None) -> None:
        """Close with a choice. A handler must not wait for its own screen."""
        closing = self.dismiss(chosen)
        del closing

    def _fill(self, query: str) -> None:
        words = query.lower().split()
        items = self._items.values()
        widest = max((cell_len(item.label) for item in items), default=0)
        column = min(LABEL_WIDTH, max(LABEL_WIDTH_MIN, self.app.size.width // 2), widest)
        choices = self.query_one(OptionList)
        choices.clear_options()
        for item in items:
            if all(word in f"{item.label} {item.note} {item.id}".lower() for word in words):
                text = Text(clean(item.label))
                text.truncate(column, overflow="ellipsis", pad=True)
                if item.note:
                    text.append(f"  {clean(item.note)}", style="dim")
                choices.add_option(Option(text, id=item.id))
        if choices.option_count:
            choices.highlighted = 0
        else:
            choices.add_option(Option(Text("Nothing has these words.", style="dim"), disabled=True))
