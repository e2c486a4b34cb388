"""What one session asks, in front of the list: as `fairlead chat` asks it."""

from typing import ClassVar, NamedTuple, TypeAlias

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from typing_extensions import override

from fairlead_cli.chat.screen.ask_panel import AskPanel
from fairlead_cli.chat.view.ask_text import ShownAsk
from fairlead_schema.permission import PermissionRequest, QuestionRequest, Reply


class ChosenReply(NamedTuple):
    """The reply to a permission. The model reads the message of a rejection."""

    reply: Reply
    message: str | None = None


AskAnswer: TypeAlias = ChosenReply | list[list[str]] | None
"""The reply to a permission, the answers to a question, or None: the person leaves it open."""


class AnswerScreen(ModalScreen[AskAnswer]):
    """Asks the person. A question with several parts is asked part by part."""

    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
    ]
    DEFAULT_CSS = """
    AnswerScreen { align: center bottom; }
    AnswerScreen AskPanel { background: ansi_default; }
    """

    def __init__(self, ask: PermissionRequest | QuestionRequest, *, count: int = 1) -> None:
        """`count` is how many the session asks."""
        super().__init__()
        self._ask = ask
        self._count = count

    @override
    def compose(self) -> ComposeResult:
        yield AskPanel(escape="Esc leaves it open")

    def on_mount(self) -> None:
        self.query_one(AskPanel).show(ShownAsk(self._ask), count=self._count)

    def on_resize(self) -> None:
        self.query_one(AskPanel).fit()

    def on_ask_panel_permission_answered(self, event: AskPanel.PermissionAnswered) -> None:
        _ = self.dismiss(ChosenReply(event.reply, event.message))

    def on_ask_panel_question_answered(self, event: AskPanel.QuestionAnswered) -> None:
        _ = self.dismiss(event.answers)

    def action_leave(self) -> None:
        _ = self.dismiss(None)

    def action_page(self, direction: int) -> None:
        self.query_one(AskPanel).scroll_text(direction)
