"""The field in which a person writes."""

import time
from typing import ClassVar, Final, Literal

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import TextArea
from typing_extensions import override

from fairlead_cli.chat.screen.choice_list import CompletionList
from fairlead_cli.chat.view.completion import CompletionTarget, complete, find_target
from fairlead_cli.chat.view.pasted import DroppedFiles, LongText, Pasted, TypedText, read_paste
from fairlead_cli.chat.view.plain_text import clean
from fairlead_cli.chat.view.prompt_history import PromptHistory
from fairlead_schema.prompt import Delivery

TYPING_S: Final = 1.0
"""A person who pauses for so long looks at the screen again."""
_NEW_LINE = frozenset({"ctrl+j", "shift+enter", "alt+enter"})


class Composer(TextArea):
    """Enter sends, Ctrl-J makes a new line, arrows walk through earlier prompts."""

    # Ctrl-Z suspends the program, as in every terminal.
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+underscore", "undo", show=False)]

    class Submitted(Message):
        """A person sent what is written."""

        def __init__(self, text: str, delivery: Delivery) -> None:
            super().__init__()
            self.text = text
            self.delivery = delivery

    class PasteTaken(Message):
        """A person pasted something that is no short text."""

        def __init__(self, pasted: Pasted) -> None:
            super().__init__()
            self.pasted = pasted

    class Asked(Message):
        """A person pressed a key that the application answers."""

        def __init__(self, what: Literal["leave", "cards", "image"]) -> None:
            super().__init__()
            self.what = what

    def __init__(self, completion: CompletionList, history: PromptHistory) -> None:
        super().__init__(
            id="composer",
            compact=True,
            highlight_cursor_line=False,
            placeholder="Ask · / commands · @ files · ! shell",
        )
        self._completion = completion
        self._history = history
        self._typed_at = 0.0

    @property
    def is_typing(self) -> bool:
        """Whether a person is in the middle of a text."""
        return bool(self.text) and time.monotonic() - self._typed_at < TYPING_S

    @property
    def target(self) -> CompletionTarget | None:
        """The word before the cursor that can be completed."""
        row, column = self.cursor_location
        return find_target(self.document[row], column, is_first_line=row == 0)

    def put(self, text: str) -> None:
        """Replace what is written, with the cursor at the end."""
        self.text = text
        self.move_cursor(self.document.end)

    def clear_draft(self) -> None:
        """Remove what is written. It returns with the key for earlier prompts."""
        self._history.add(self.text)
        self.put("")

    @override
    async def _on_key(self, event: events.Key) -> None:
        self._typed_at = time.monotonic()
        handled = self._handle(event.key)
        if handled:
            event.stop()
            event.prevent_default()
            return
        await super()._on_key(event)

    def _handle(self, key: str) -> bool:
        is_completing = self._completion.choice is not None
        match key:
            case "enter" if is_completing and self._is_unfinished():
                self._take_completion()
            case "enter":
                self._submit("steer")
            case "tab" if is_completing:
                self._take_completion()
            case "tab" if self.text.strip():
                self._submit("queue")
            case "tab" | "shift+tab":
                self.post_message(self.Asked("cards"))
            case "escape" if is_completing:
                self._completion.offer(None, ())
            case "ctrl+v":
                self.post_message(self.Asked("image"))
            case _ if key in _NEW_LINE:
                self.insert("\n")
            case _:
                return False
        return True

    def _is_unfinished(self) -> bool:
        """Whether the completion would change the word. A finished command is sent at once."""
        target, choice = self.target, self._completion.choice
        if target is None or choice is None:
            return False
        row, column = self.cursor_location
        return self.document[row][target.start : column] != choice.text

    def _take_completion(self) -> None:
        target, choice = self._completion.target, self._completion.choice
        if target is None or choice is None:
            return
        row, column = self.cursor_location
        line = self.document[row]
        text, cursor = complete(line, column, target, choice)
        self.replace(text, (row, 0), (row, len(line)))
        self.move_cursor((row, cursor))
        self._completion.offer(None, ())

    def _submit(self, delivery: Delivery) -> None:
        text = self.text
        if text.endswith("\\"):
            self.put(text[:-1] + "\n")
            return
        self._history.add(text)
        self.put("")
        self._completion.offer(None, ())
        self.post_message(self.Submitted(text, delivery))

    @override
    def action_cursor_up(self, select: bool = False) -> None:
        if self._completion.choice is not None:
            self._completion.move(-1)
        elif self.cursor_at_first_line and not select:
            earlier = self._history.back(self.text)
            if earlier is not None:
                self.put(earlier)
        else:
            super().action_cursor_up(select)

    @override
    def action_cursor_down(self, select: bool = False) -> None:
        if self._completion.choice is not None:
            self._completion.move(1)
        elif self.cursor_at_last_line and not select:
            later = self._history.forth()
            if later is not None:
                self.put(later)
        else:
            super().action_cursor_down(select)

    @override
    def action_delete_right(self) -> None:
        if self.text:
            super().action_delete_right()
        else:
            self.post_message(self.Asked("leave"))

    @override
    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        pasted = read_paste(clean(event.text.replace("\r\n", "\n").replace("\r", "\n")))
        match pasted:
            case TypedText(text):
                self.insert(text)
            case LongText() | DroppedFiles():
                self.post_message(self.PasteTaken(pasted))
