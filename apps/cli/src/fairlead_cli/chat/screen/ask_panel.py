"""Asks a person: may this call run, and what is the answer to a question of the model?"""

from collections.abc import Sequence

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input, OptionList, Static
from typing_extensions import override

from fairlead_cli.chat.screen.choice_list import ChoiceList
from fairlead_cli.chat.view.ask_text import ask_text, permission_choices, question_choices
from fairlead_cli.chat.view.question_form import QuestionForm
from fairlead_cli.chat.view.session_view import Ask
from fairlead_schema.permission import PermissionRequest, QuestionRequest, Reply

OWN_WORDS = "own-words"
DONE = "done"
_REPLIES: dict[str, Reply] = {"once": "once", "always": "always", "reject": "reject"}


class AskPanel(Vertical):
    """Shows one ask at a time, where a person writes."""

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

    def __init__(self) -> None:
        super().__init__(id="ask")
        self.display = False
        self.ask: Ask | None = None
        self._form: QuestionForm | None = None

    @override
    def compose(self) -> ComposeResult:
        yield Static(id="ask-text")
        yield ChoiceList(id="ask-choices", compact=True)
        yield Input(id="ask-words", compact=True)

    def show(self, ask: Ask | None, *, asked_by: str, waiting: int) -> None:
        """Show an ask, or nothing. The same ask again changes nothing but the count."""
        if ask is None:
            self.ask, self._form, self.display = None, None, False
            return
        if self.ask is None or self.ask.id != ask.id:
            self.ask = ask
            self._form = QuestionForm(ask) if isinstance(ask, QuestionRequest) else None
            self.display = True
            self._ask(asked_by, waiting)
            self.focus_choices()

    def focus_choices(self) -> None:
        """Give the keys to what a person answers with."""
        words = self.query_one("#ask-words", Input)
        (words if words.display else self.query_one(ChoiceList)).focus()

    def _ask(self, asked_by: str = "", waiting: int = 1) -> None:
        assert self.ask is not None, "there is something to ask"
        question = None if self._form is None else self._form.question
        text = Text()
        for style, line in ask_text(self.ask, question, asked_by=asked_by, waiting=waiting):
            text.append(f"{line}\n", style=style)
        text.right_crop(1)
        self.query_one("#ask-text", Static).update(text)
        words = self.query_one("#ask-words", Input)
        words.display = False
        choices = self.query_one(ChoiceList)
        choices.display = True
        choices.fill(self._choices())

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
