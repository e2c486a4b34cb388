"""The application: puts the widgets together, and sends what a person does to the session."""

import asyncio
import time
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from typing_extensions import override

from fairlead_cli.chat.attachment_tray import AttachmentTray
from fairlead_cli.chat.chat_start import ChatStart, ServerOffer
from fairlead_cli.chat.command_runner import FAILURES, failure_text, run_command
from fairlead_cli.chat.completion_source import find_choices
from fairlead_cli.chat.history_file import load_prompts, save_prompt
from fairlead_cli.chat.screen.ask_panel import AskPanel
from fairlead_cli.chat.screen.choice_list import CompletionList
from fairlead_cli.chat.screen.composer import Composer
from fairlead_cli.chat.screen.frame_clock import FrameClock
from fairlead_cli.chat.screen.input_bytes import tolerate_broken_input
from fairlead_cli.chat.screen.picker import FindItems, Picker, PickerItem
from fairlead_cli.chat.screen.screen_signals import draw_after_suspension, leave_on_signals, suspend
from fairlead_cli.chat.screen.side_lines import Hint, SideText, activity_text, status_text
from fairlead_cli.chat.screen.style import STYLE
from fairlead_cli.chat.screen.transcript import CARD_KEYS, TranscriptPane
from fairlead_cli.chat.session_link import SessionLink
from fairlead_cli.chat.view.command_line import (
    PromptLine,
    ShellLine,
    SlashCommand,
    TypedLine,
    UnknownCommand,
    parse_line,
)
from fairlead_cli.chat.view.entries import NoticeLevel
from fairlead_cli.chat.view.prompt_history import PromptHistory
from fairlead_cli.chat.view.session_view import SAID
from fairlead_cli.chat.view.status_line import Surroundings
from fairlead_cli.errors import CommandError
from fairlead_client import AsyncFairlead, ClientError, Refused
from fairlead_client.async_client.http_connection import AsyncHttpConnection
from fairlead_schema.errors import Unauthorized
from fairlead_schema.ids import SessionId
from fairlead_schema.prompt import Delivery

TICK_S: Final = 0.5
LEAVE_S: Final = 2.0
"""A second Ctrl-C within this time leaves."""


class ChatApp(App[SessionId]):
    """One session in the terminal. Its result is the session that was shown last."""

    CSS = STYLE
    ENABLE_COMMAND_PALETTE = False
    VERTICAL_BREAKPOINTS = [(0, "-short"), (12, "-tall")]  # noqa: RUF012 - as the library has it
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "leave_or_clear", show=False, priority=True),
        Binding("ctrl+q", "none", show=False, priority=True),
        Binding("ctrl+z", "suspend", show=False, priority=True),
        Binding("ctrl+o", "unfold_all", show=False, priority=True),
        Binding("pageup", "page(-1)", show=False, priority=True),
        Binding("pagedown", "page(1)", show=False, priority=True),
        Binding("ctrl+end", "follow_end", show=False, priority=True),
        Binding("escape", "escape", show=False),
    ]

    def __init__(
        self,
        fairlead: AsyncFairlead,
        connection: AsyncHttpConnection,
        start: ChatStart,
        offer: ServerOffer,
        history: Path,
    ) -> None:
        tolerate_broken_input()
        super().__init__(ansi_color=True)
        self.offer = offer
        self.link = SessionLink(fairlead, start, self._schedule)
        self.first_session: SessionId | None = None
        self.first_prompt: str | None = None
        self.picks_first = False
        self._connection = connection
        self._history_file = history
        self._tray = AttachmentTray()
        self._said = 0
        self._clock = FrameClock()
        self._leaving_at = 0.0
        self._hint = ""
        self._is_leaving = False
        self._trail: list[SessionId] = []
        """The sessions from which a person went into those of sub-agents."""

    @override
    def compose(self) -> ComposeResult:
        completion = CompletionList()
        yield TranscriptPane(self.link.view)
        yield SideText(id="activity")
        yield AskPanel(escape="Esc interrupts")
        yield completion
        yield Composer(completion, PromptHistory(load_prompts(self._history_file)))
        yield SideText(id="status")

    def on_mount(self) -> None:
        self.theme = "ansi-dark"
        self.open_session(self.first_session)
        self.query_one(Composer).focus()
        self.set_interval(TICK_S, self._tick)
        leave_on_signals(self.leave)
        draw_after_suspension(self)
        if self.picks_first:
            self._work(run_command(self, SlashCommand("sessions", "")))
        if self.first_prompt:
            self._work(self._send(self.first_prompt, "steer"))

    # What the session does.

    def _schedule(self) -> None:
        """Draw soon."""
        self._clock.ask(self._draw_in)

    def _draw_in(self, wait_s: float) -> None:
        if wait_s:
            self.set_timer(wait_s, self._frame)
        else:
            self.call_later(self._frame)

    def _frame(self) -> None:
        if self._is_leaving:
            return
        with self._clock:
            transcript = self.query_one(TranscriptPane)
            if transcript.view is not self.link.view:
                transcript.show(self.link.view)
            transcript.sync()
        self._show_ask()
        self._show_lines()

    def _tick(self) -> None:
        """Keep clocks and the state of the connection up to date."""
        if self._is_leaving:
            return
        if self._leaving_at and time.monotonic() - self._leaving_at > LEAVE_S:
            self._leaving_at, self._hint = 0.0, ""
        if isinstance(self._connection.failure, Unauthorized):
            self.link.say_signed_out()
        if self.link.view.activity != "resting" or self.link.asks:
            self._schedule()
        self._show_lines()

    def _show_lines(self) -> None:
        link, width = self.link, self.size.width
        around = Surroundings(
            window=self.offer.windows.get(link.view.model, 0),
            children_cost=link.sub_agents.cost,
            is_away=self._connection.failure is not None and not link.is_deleted,
            attachments=len(self._tray),
            is_asked=bool(link.asks),
            is_sub_agent=bool(self._trail),
        )
        text = activity_text(
            link.view, [sent.text for sent in link.sending.values()], self._tray.labels, self.size
        )
        self.query_one("#activity", SideText).put(text)
        self.query_one("#status", SideText).put(status_text(link.view, around, self._hint, width))

    def _show_ask(self) -> None:
        asks, panel, composer = self.link.asks, self.query_one(AskPanel), self.query_one(Composer)
        if asks and not panel.display and composer.is_typing:
            # A key that was meant for the text must not answer. The clock comes back to this.
            return
        panel.escape = "Esc returns" if self._trail else "Esc interrupts"
        panel.show(asks[0] if asks else None, count=len(asks))
        if panel.display:
            composer.display = False
        elif not composer.display:
            composer.display = True
            composer.focus()

    # What a person does.

    def on_composer_submitted(self, event: Composer.Submitted) -> None:
        """Send, or run, what a person typed."""
        if not event.text.strip() and not self._tray:
            return
        save_prompt(self._history_file, event.text)
        line = parse_line(event.text, self.offer.command_names)
        self._work(self._perform(line, event.delivery), restore=event.text)

    async def _perform(self, line: TypedLine, delivery: Delivery) -> None:
        match line:
            case SlashCommand():
                await run_command(self, line)
            case UnknownCommand(_, message):
                raise CommandError(message)
            case ShellLine(command):
                await self.link.fairlead.shell(await self.link.ensure_session(), command)
            case PromptLine(text):
                await self._send(text, delivery)

    async def _send(self, text: str, delivery: Delivery) -> None:
        attachments = self._tray.take()
        try:
            await self.link.send(text, delivery, attachments)
        except (Refused, ClientError, asyncio.CancelledError):
            self._tray.put_back(attachments)
            raise
        self.query_one(TranscriptPane).follow_end()

    def on_composer_paste_taken(self, event: Composer.PasteTaken) -> None:
        """Attach a long text, or files that were dropped."""
        for path in self._tray.add_pasted(event.pasted):
            self.query_one(Composer).insert(path)
        self._show_lines()

    def on_composer_asked(self, event: Composer.Asked) -> None:
        """Leave, go to the cards, or attach an image."""
        match event.what:
            case "leave":
                self.leave()
            case "cards":
                self.query_one(TranscriptPane).focus()
                self._hint = Hint.CARDS
                self._show_lines()
            case "image":
                self._work(self._attach_image())

    async def _attach_image(self) -> None:
        await self._tray.add_image()
        self._show_lines()

    def on_text_area_changed(self, _event: Composer.Changed) -> None:
        """ServerOffer completions for the word before the cursor."""
        self.run_worker(self._complete(), group="completion", exclusive=True)

    async def _complete(self) -> None:
        composer, completion = self.query_one(Composer), self.query_one(CompletionList)
        target = composer.target
        if target is None:
            completion.offer(None, ())
            return
        choices = await find_choices(self.link, self.offer, target)
        if composer.target == target:
            completion.offer(target, choices)

    def on_ask_panel_permission_answered(self, event: AskPanel.PermissionAnswered) -> None:
        """Send the reply of a person."""
        self._answer(self.link.approve(event.request, event.reply, event.message))

    def on_ask_panel_question_answered(self, event: AskPanel.QuestionAnswered) -> None:
        """Send the answers of a person."""
        self._answer(self.link.answer(event.request, event.answers))

    def _answer(self, work: Coroutine[Any, Any, None]) -> None:
        async def attempt() -> None:
            try:
                await work
            except (Refused, ClientError):
                # The person is asked again.
                self.query_one(AskPanel).ask_again()
                raise

        self._work(attempt())

    def on_transcript_pane_child_opened(self, event: TranscriptPane.ChildOpened) -> None:
        """Show the session of a sub-agent. Esc returns."""
        self._trail.append(self.link.view.session_id)
        self._hint = ""
        self.query_one(Composer).focus()
        self._open(event.session_id)

    def on_key(self, event: events.Key) -> None:
        """Write where a person writes, whatever has the focus."""
        composer = self.query_one(Composer)
        is_for_cards = self.query_one(TranscriptPane).has_focus and event.key in CARD_KEYS
        is_free = composer.display and not composer.has_focus and not is_for_cards
        if event.character and event.is_printable and is_free:
            composer.focus()
            composer.insert(event.character)

    def action_escape(self) -> None:
        """Return from the cards or a sub-agent, or interrupt the work."""
        if self.query_one(TranscriptPane).has_focus:
            self._hint = ""
            self.query_one(Composer).focus()
        elif self._trail:
            self._open(self._trail.pop())
        elif self.link.view.activity != "resting" or self.link.asks:
            self._work(self.link.interrupt())

    def action_leave_or_clear(self) -> None:
        """Copy a selection, or clear what is written, or leave at the second time."""
        selected = self.screen.get_selected_text()
        if selected:
            self.copy_to_clipboard(selected)
            self.screen.clear_selection()
            return
        if self._leaving_at:
            self.leave()
            return
        composer = self.query_one(Composer)
        if composer.display:
            composer.clear_draft()
        self._leaving_at = time.monotonic()
        self._hint = Hint.LEAVE_UNSENT if self.link.sending else Hint.LEAVE
        self._show_lines()

    def action_none(self) -> None:
        """Do nothing: the key would end the application."""

    def action_suspend(self) -> None:
        """Give the terminal to the shell."""
        if not suspend():
            self._hint = Hint.NO_SHELL
            self._show_lines()

    def action_unfold_all(self) -> None:
        self.query_one(TranscriptPane).unfold_all()

    def action_page(self, direction: int) -> None:
        """Scroll what is asked, if there is more of it, or else the transcript."""
        if not self.query_one(AskPanel).scroll_text(direction):
            self.query_one(TranscriptPane).page(direction)

    def action_follow_end(self) -> None:
        self.query_one(TranscriptPane).follow_end()

    def on_resize(self) -> None:
        self.query_one(AskPanel).fit()

    # What commands need.

    def say(self, text: str, level: NoticeLevel = "info") -> None:
        """Show one sentence in the transcript."""
        self._said += 1
        self.link.view.notice(f"{SAID}{self._said}", text, level)
        self._schedule()

    def attach(self, path: str) -> None:
        """Attach a file to the next prompt."""
        self._tray.add_file(path)
        self._show_lines()

    async def drop(self) -> None:
        """Withdraw attachments, or else the last prompt that waits."""
        if self._tray:
            self._tray.take()
        elif (text := self.link.withdraw()) is not None:
            self.query_one(Composer).put(text)
        elif self.link.view.inbox:
            last = list(self.link.view.inbox.values())[-1]
            await self.link.fairlead.cancel(self.link.view.session_id, last.message_id)
            self.query_one(Composer).put(last.text)
        else:
            raise CommandError("Nothing waits.")
        self._show_lines()

    async def pick(
        self, title: str, items: Sequence[PickerItem], find: FindItems | None = None
    ) -> str | None:
        """Let a person choose. `find` finds more for what they type."""
        return await self.push_screen_wait(Picker(title, items, find))

    def open_session(self, session_id: SessionId | None) -> None:
        """Show a session, or begin one."""
        self._trail = []
        self._open(session_id)

    def leave(self, exit_code: int = 0) -> None:
        """End the application. The session goes on."""
        self._is_leaving = True
        self.link.close()
        shown = self._trail[0] if self._trail else self.link.view.session_id
        self.exit(shown, return_code=exit_code)

    def _open(self, session_id: SessionId | None) -> None:
        if session_id is None:
            self.link.begin()
            self.say("A new session. /help shows commands and keys, /sessions earlier sessions.")
        else:
            self.link.open(session_id)
        self._frame()

    def _work(self, work: Coroutine[Any, Any, None], *, restore: str = "") -> None:
        """Do something that may fail, and say why it failed."""

        async def attempt() -> None:
            try:
                await work
            except FAILURES as error:
                self.say(failure_text(error), "error")
                composer = self.query_one(Composer)
                if restore and not composer.text:
                    composer.put(restore)

        self.run_worker(attempt(), group="work", exit_on_error=True)
