"""A list of choices that numbers and arrows select, and the completions above the composer."""

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from fairlead_cli.chat.view.completion import CompletionChoice, CompletionTarget


class ChoiceList(OptionList):
    """Choices with numbers: the key of a number chooses at once. The space key only sets marks."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("space", "mark", show=False)]

    def __init__(self) -> None:
        super().__init__(id="ask-choices", compact=True)
        self._takes_marks = False

    def fill(self, labels: Sequence[tuple[str, str, str]], *, takes_marks: bool) -> None:
        """Show choices: the id, the label and a note of each."""
        self._takes_marks = takes_marks
        self.clear_options()
        for number, (id_, label, note) in enumerate(labels, start=1):
            text = Text(f"{number}. " if number < 10 else "   ", style="dim")  # noqa: PLR2004
            text.append(label, style="bold")
            if note:
                text.append(f"  {note}", style="dim")
            self.add_option(Option(text, id=id_))
        self.highlighted = 0

    def lines_at(self, width: int) -> int:
        """How many lines the choices take, about, with lines of a width."""
        texts = (str(option.prompt) for option in self.options)
        return sum(max(1, -(-cell_len(text) // max(1, width))) for text in texts)

    def action_mark(self) -> None:
        """Set or take a mark. A choice that cannot be taken back needs another key."""
        if self._takes_marks:
            self.action_select()

    def on_key(self, event: events.Key) -> None:
        """Choose by number."""
        if event.key.isdigit() and 0 < int(event.key) <= self.option_count:
            event.stop()
            self.highlighted = int(event.key) - 1
            self.action_select()


class CompletionList(OptionList, can_focus=False):
    """The ways to complete the word before the cursor. The composer has the keys."""

    def __init__(self) -> None:
        super().__init__(id="completion", compact=True)
        self.display = False
        self._choices: list[CompletionChoice] = []
        self.target: CompletionTarget | None = None

    def offer(self, target: CompletionTarget | None, choices: Sequence[CompletionChoice]) -> None:
        """Show choices for a word. Without a choice the list is hidden."""
        self.target, self._choices = target, list(choices)
        self.display = bool(self._choices) and target is not None
        self.clear_options()
        for choice in self._choices:
            text = Text(choice.text, no_wrap=True, overflow="ellipsis")
            if choice.note:
                text.append(f"  {choice.note}", style="dim")
            self.add_option(Option(text))
        self.highlighted = 0 if self._choices else None

    @property
    def choice(self) -> CompletionChoice | None:
        """What is chosen now; None while the list is hidden."""
        if not self.display or self.highlighted is None:
            return None
        return self._choices[self.highlighted]

    def move(self, direction: int) -> None:
        """Go to the choice before or after, around the ends."""
        if self._choices:
            self.highlighted = ((self.highlighted or 0) + direction) % len(self._choices)
