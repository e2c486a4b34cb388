"""Asks a person: may this call run, and what is the answer to a question of the model?"""

from collections.abc import Sequence
from typing import ClassVar, Final

from rich.text import Text
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.message import Message
from textual.widgets import Input, OptionList, Static
from typing_extensions import override

from fairlead_cli.chat.screen.choice_list import ChoiceList
from fairlead_cli.chat.view.ask_text import ShownAsk, ask_text, permission_choices, question_choices
from fairlead_cli.chat.view.question_form import QuestionForm
from fairlead_cli.chat.view.session_view import Ask
from fairlead_schema.permission import PermissionRequest, QuestionRequest, Reply

OWN_WORDS = "own-words"
DONE = "done"
_SHARE: Final = 0.7
"""So much of the screen an ask may take."""
_LINES_MIN: Final = 4
_REPLIES: dict[str, Reply] = {"once": "once", "always": "always", "reject": "reject"}


class AskPanel(Vertical):
    """Shows one ask at a time, where a person writes. The choices are always in sight; the text scrolls."""

    DEFAULT_CSS = """
    AskPanel {
        height: auto;
        border-top: solid ansi_yellow;
        border-title-align: right;
        border-title-color: ansi_bright_black;
        padding: 0 1;
    }
    AskPanel VerticalScroll { height: auto; scrollbar-size-vertical: 1; }
    AskPanel #ask-text { height: auto; }
    AskPanel #ask-choices { height: auto; background: ansi_default; border: none; }
    AskPanel #ask-words { display: none; background: ansi_default; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "back", show=False)]

    class PermissionAnswered(Message):
        def __init__(self, request: PermissionRequest, reply: Reply, message: str | None) -> None:
            super().__init__()
            self.request = request
            self.reply = reply
            self.message = message

    class QuestionAnswered(Message):
        def __init__(self, request: QuestionRequest, answers: list[list[str]]) -> None:
            super().__init__()
            self.request = request
            self.answers = answers

    def __init__(self, *, escape: str) -> None:
        super().__init__(id="ask")
        self.display = False
        self.escape = escape
        """What the key Esc does, in words."""
        self.waiting: ShownAsk | None = None
        self._count = 1
        self._form: QuestionForm | None = None

    @property
    def ask(self) -> Ask | None:
        """What is asked now."""
        return None if self.waiting is None else self.waiting.ask

    @override
    def compose(self) -> ComposeResult:
        with VerticalScroll(can_focus=False):
            yield Static(id="ask-text")
        yield ChoiceList()
        yield Input(id="ask-words", compact=True)

    def show(self, waiting: ShownAsk | None, *, count: int = 1) -> None:
        """Show an ask, or nothing. The same ask again changes nothing but the count."""
        known = self.ask
        self.waiting, is_new_count = waiting, self._count != count
        self._count = count
        if waiting is None:
            self._form, self.display = None, False
        elif known is None or known.id != waiting.ask.id:
            ask = waiting.ask
            self._form = QuestionForm(ask) if isinstance(ask, QuestionRequest) else None
            self.display = True
            self._ask()
            self.focus_choices()
        elif is_new_count:
            self._show_text()

    def ask_again(self) -> None:
        """Take the answer as not given."""
        self.waiting = None

    def focus_choices(self) -> None:
        """Give the keys to what a person answers with."""
        words = self.query_one("#ask-words", Input)
        (words if words.display else self.query_one(ChoiceList)).focus()

    def fit(self) -> None:
        """Give the choices the lines that they need, and the text the rest."""
        width, height = self.screen.size
        room = max(_LINES_MIN, int(height * _SHARE)) - 1
        choices = self.query_one(ChoiceList)
        wanted = choices.lines_at(width - 3) if choices.display else 1
        lines = min(wanted, max(1, room - 2))
        # Words may need one line more than their letters.
        choices.styles.max_height = lines + 1 if lines == wanted else lines
        scroll = self.query_one(VerticalScroll)
        scroll.styles.max_height = max(1, room - lines)
        self.call_after_refresh(self._name_keys)

    def scroll_text(self, direction: int) -> bool:
        """Scroll the text by a page. False: there is no more of it in this direction."""
        scroll = self.query_one(VerticalScroll)
        is_over = scroll.scroll_y >= scroll.max_scroll_y if direction > 0 else scroll.scroll_y <= 0
        if not self.display or is_over:
            return False
        scroll.scroll_relative(y=direction * max(1, scroll.size.height - 1), animate=False)
        return True

    def action_back(self) -> None:
        """Return from one's own words to the choices. Otherwise the key is not for this panel."""
        has_choices = len(self._choices()) > 1
        if not (has_choices and self.query_one("#ask-words", Input).display):
            raise SkipAction
        self._ask()
        self.focus_choices()

    def _name_keys(self) -> None:
        is_long = self.query_one(VerticalScroll).max_scroll_y > 0
        keys = f"PgDn shows more · {self.escape}" if is_long else self.escape
        self.border_title = f" {keys} "

    def _ask(self) -> None:
        self.query_one(VerticalScroll).scroll_home(animate=False)
        self._show_text()
        self.query_one("#ask-words", Input).display = False
        choices = self.query_one(ChoiceList)
        choices.display = True
        question = None if self._form is None else self._form.question
        is_several = question is not None and question.multiple is True
        choices.fill(self._choices(), takes_marks=is_several)
        if question is not None and not question.options:
            self._ask_for_words()
        self.fit()

    def _show_text(self) -> None:
        assert self.waiting is not None, "there is something to ask"
        question = None if self._form is None else self._form.question
        text = Text()
        for style, line in ask_text(self.waiting, question, count=self._count):
            text.append(f"{line}\n", style=style)
        text.right_crop(1)
        self.query_one("#ask-text", Static).update(text)

    def _choices(self) -> Sequence[tuple[str, str, str]]:
        if isinstance(self.ask, PermissionRequest):
            return permission_choices(self.ask)
        assert self._form is not None, "a question has a form"
        return question_choices(self._form)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Take the choice of a person."""
        event.stop()
        chosen = event.option_id or ""
        if chosen == OWN_WORDS:
            self._ask_for_words()
        elif isinstance(self.ask, PermissionRequest):
            self._reply(_REPLIES[chosen], None)
        elif self._form is not None:
            self._answer(chosen)

    def _answer(self, chosen: str) -> None:
        form = self._form
        question = None if form is None else form.question
        if form is None or question is None:
            return
        if chosen == DONE:
            form.answer()
        elif question.multiple:
            form.mark(question.options[int(chosen)].label)
            at = self.query_one(ChoiceList).highlighted
            self._ask()
            self.query_one(ChoiceList).highlighted = at
            return
        else:
            form.answer(question.options[int(chosen)].label)
        self._go_on(form)

    def _ask_for_words(self) -> None:
        words = self.query_one("#ask-words", Input)
        is_permission = isinstance(self.ask, PermissionRequest)
        words.placeholder = "Why not, or what instead?" if is_permission else "Your answer"
        words.value = ""
        words.display = True
        self.query_one(ChoiceList).display = False
        words.focus()
        self.fit()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take the words of a person."""
        event.stop()
        text = event.value.strip()
        if isinstance(self.ask, PermissionRequest):
            self._reply("reject", text or None)
        elif self._form is not None and text:
            self._form.answer(text)
            self._go_on(self._form)

    def _go_on(self, form: QuestionForm) -> None:
        if form.question is not None:
            self._ask()
            self.focus_choices()
            return
        self.post_message(self.QuestionAnswered(form.request, form.answers))
        self.display = False

    def _reply(self, reply: Reply, message: str | None) -> None:
        if isinstance(self.ask, PermissionRequest):
            self.post_message(self.PermissionAnswered(self.ask, reply, message))
            self.display = False
