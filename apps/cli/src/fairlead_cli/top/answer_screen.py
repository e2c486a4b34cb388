"""The questions of one session, one at a time: keys for a permission, a choice or a text for a question."""

from typing import ClassVar, TypeAlias

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Label, OptionList
from textual.widgets.option_list import Option
from typing_extensions import override

from fairlead_schema.permission import PermissionRequest, QuestionRequest

AskAnswer: TypeAlias = str | list[list[str]] | None
"""The reply to a permission, the answers to a question, or None: the person leaves it open."""
_REPLIES = {"once": "allow once", "always": "allow always", "reject": "reject"}


class AnswerScreen(ModalScreen[AskAnswer]):
    """Asks the person. A question with several parts is asked part by part."""

    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "leave it open")]
    DEFAULT_CSS = """
    AnswerScreen { align: center middle; }
    AnswerScreen Vertical {
        width: 90%; max-width: 80; height: auto; max-height: 90%; padding: 1 2; border: round $primary;
    }
    AnswerScreen OptionList { height: auto; max-height: 12; }
    """

    def __init__(self, ask: PermissionRequest | QuestionRequest) -> None:
        super().__init__()
        self._ask = ask
        self._answers: list[list[str]] = []

    @override
    def compose(self) -> ComposeResult:
        with Vertical():
            yield Label(markup=False, id="what")
            yield OptionList(id="choices", markup=False)
            yield Input(placeholder="or write an answer", id="text")

    def on_mount(self) -> None:
        self._show()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        chosen = event.option.id or ""
        if isinstance(self._ask, PermissionRequest):
            _ = self.dismiss(chosen)
        else:
            self._take(str(event.option.prompt))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if event.value.strip():
            self._take(event.value.strip())

    def action_leave(self) -> None:
        _ = self.dismiss(None)

    def _take(self, answer: str) -> None:
        assert isinstance(self._ask, QuestionRequest), "a permission takes no text"
        self._answers.append([answer])
        if len(self._answers) == len(self._ask.questions):
            _ = self.dismiss(self._answers)
        else:
            self._show()

    def _show(self) -> None:
        choices, text = self.query_one("#choices", OptionList), self.query_one("#text", Input)
        choices.clear_options()
        text.value = ""
        if isinstance(self._ask, PermissionRequest):
            what = f"{self._ask.action} {', '.join(self._ask.resources)}"
            choices.add_options(Option(label, id=reply) for reply, label in _REPLIES.items())
            text.display = False
        else:
            question = self._ask.questions[len(self._answers)]
            what = question.question
            choices.add_options(Option(option.label) for option in question.options)
            text.display = question.custom is not False
        self.query_one("#what", Label).update(what)
        if choices.option_count:
            choices.highlighted = 0
        (choices if choices.option_count else text).focus()
