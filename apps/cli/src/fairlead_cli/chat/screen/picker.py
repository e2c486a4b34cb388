"""A list in front of everything else: sessions, models, agents, help."""

from collections.abc import Sequence
from typing import ClassVar, Final, NamedTuple

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option
from typing_extensions import override

LABEL_WIDTH: Final = 40


class PickerItem(NamedTuple):
    """One thing to choose."""

    id: str
    label: str
    note: str = ""


class Picker(ModalScreen[str | None]):
    """Chooses one item. Typing narrows the list. Esc chooses nothing."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c", "dismiss(None)", show=False, priority=True),
        Binding("up", "move(-1)", show=False, priority=True),
        Binding("down", "move(1)", show=False, priority=True),
    ]

    def __init__(self, title: str, items: Sequence[PickerItem]) -> None:
        super().__init__()
        self._title = title
        self._items = items

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

    def on_input_submitted(self, _event: Input.Submitted) -> None:
        """Choose what is highlighted."""
        choices = self.query_one(OptionList)
        if choices.highlighted is not None:
            self._end(choices.get_option_at_index(choices.highlighted).id)

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

    def _end(self, chosen: str | None) -> None:
        """Close with a choice. A handler must not wait for its own screen."""
        closing = self.dismiss(chosen)
        del closing

    def _fill(self, query: str) -> None:
        words = query.lower().split()
        column = min(LABEL_WIDTH, max((len(item.label) for item in self._items), default=0))
        choices = self.query_one(OptionList)
        choices.clear_options()
        for item in self._items:
            if all(word in f"{item.label} {item.note} {item.id}".lower() for word in words):
                text = Text(item.label.ljust(column), no_wrap=True, overflow="ellipsis")
                if item.note:
                    text.append(f"  {item.note}", style="dim")
                choices.add_option(Option(text, id=item.id))
        if choices.option_count:
            choices.highlighted = 0
