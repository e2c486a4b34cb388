"""The screen: sessions with their states, a line of rates and costs, and keys to act."""

import asyncio
import subprocess
import time
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import ClassVar, Final

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Footer, Static
from typing_extensions import override

from fairlead_cli.chat.screen.screen_signals import draw_after_suspension, leave_on_signals, suspend
from fairlead_cli.chat.view.plain_text import clean, one_line
from fairlead_cli.errors import CommandError
from fairlead_cli.gateway import explain_errors
from fairlead_cli.top.answer_screen import AnswerScreen, AskAnswer, ChosenReply
from fairlead_cli.top.look import ASKING, Ask, SessionObserver, SessionsLook, ShownSession
from fairlead_cli.top.rates import EventRates, RateMeter
from fairlead_cli.top.tenant_stream import follow_all
from fairlead_client.async_client.http_connection import AsyncHttpConnection
from fairlead_schema.permission import PermissionRequest

COLUMNS: Final = ("STATE", "TITLE", "COST", "TOKENS", "UPDATED", "MODEL")
"""What matters most comes first: a narrow terminal shows the beginning."""
OTHERS_WIDTH: Final = 62
TITLE_MIN: Final = 16
_STYLES: Final[Mapping[str, str]] = {ASKING: "bold yellow", "running": "green", "broken": "red"}


class TopApp(App[None]):
    """Looks again and again. While the server is away it keeps the last look and says so."""

    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "open", "open"),
        Binding("a", "answer", "answer"),
        Binding("i", "interrupt", "interrupt"),
        Binding("r", "resume", "resume"),
        Binding("q,ctrl+c", "quit", "quit"),
        Binding("ctrl+z", "suspend", show=False),
    ]
    CSS = """
    #summary { height: auto; padding: 0 1; background: $panel; }
    #detail { height: auto; max-height: 6; padding: 0 1; background: $panel; }
    DataTable { height: 1fr; }
    DataTable:nocolor > .datatable--cursor { text-style: reverse; }
    """

    def __init__(
        self,
        observer: SessionObserver,
        connection: AsyncHttpConnection,
        first: SessionsLook,
        *,
        every_s: float,
        open_command: Sequence[str],
        environment: Mapping[str, str],
    ) -> None:
        # The colours of the terminal, or none where it wants none.
        super().__init__(ansi_color=True)
        self._observer, self._connection, self._every_s = observer, connection, every_s
        self._open_command, self._environment = tuple(open_command), dict(environment)
        self._shown, self._problem = first, ""
        self._meter = RateMeter()
        self._is_looking = False

    @override
    def compose(self) -> ComposeResult:
        yield Static(id="summary", markup=False)
        yield DataTable[Text](cursor_type="row", zebra_stripes=True)
        yield Static(id="detail", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        self.theme = "ansi-dark"
        self._table.add_columns(*COLUMNS)
        self.show(self._shown)
        leave_on_signals(lambda code: self.exit(return_code=code))
        draw_after_suspension(self)
        self.set_interval(self._every_s, self.refresh_look)
        self.set_interval(1.0, self._draw_summary)
        self.run_worker(self._listen(), exclusive=False)

    async def refresh_look(self) -> None:
        """Look once more, unless the last look still runs."""
        if self._is_looking:
            return
        self._is_looking = True
        try:
            with explain_errors(self._connection.url):
                look = await self._observer.look()
            self._problem = ""
        except CommandError as error:
            look, self._problem = self._shown, clean(str(error))
        finally:
            self._is_looking = False
        self.show(look)

    def show(self, look: SessionsLook) -> None:
        """Show a look. The cursor stays on its session, wherever that has moved."""
        self._shown = look
        table = self._table
        keys = list(table.rows)
        place = table.cursor_row
        selected = keys[place].value if 0 <= place < len(keys) else None
        table.clear()
        title_length = max(TITLE_MIN, self.size.width - OTHERS_WIDTH)
        for row in look.rows:
            table.add_row(*_cells(row, title_length), key=row.info.id)
        ids = [row.info.id for row in look.rows]
        if selected in ids:
            table.move_cursor(row=ids.index(selected))
        self._draw_summary()
        self._draw_detail()

    def action_open(self) -> None:
        row = self._selected
        if row is None:
            return
        with self.suspend():
            # Our own command, and an id that the server made.
            subprocess.run([*self._open_command, row.info.id], env=self._environment, check=False)  # noqa: S603
        self.refresh()

    def action_interrupt(self) -> None:
        row = self._selected
        if row is not None:
            self._act(self._observer.client.interrupt(row.info.id), f"interrupted {row.info.id}")

    def action_resume(self) -> None:
        row = self._selected
        if row is not None:
            self._act(self._observer.client.resume(row.info.id), f"resumed {row.info.id}")

    async def action_answer(self) -> None:
        row = self._selected
        if row is None or not row.asks:
            self.notify("This session asks nothing.")
            return
        ask = row.asks[0]
        screen = AnswerScreen(ask, count=len(row.asks))
        await self.push_screen(screen, lambda answer: self._send(ask, answer))

    def action_suspend(self) -> None:
        if not suspend():
            self.notify("Ctrl-Z needs a shell that started this program as a job.")

    def on_data_table_row_selected(self, _event: DataTable.RowSelected) -> None:
        self.action_open()

    def on_data_table_row_highlighted(self, _event: DataTable.RowHighlighted) -> None:
        self._draw_detail()

    def _send(self, ask: Ask, answer: AskAnswer) -> None:
        client = self._observer.client
        if isinstance(ask, PermissionRequest) and isinstance(answer, ChosenReply):
            approved = client.approve(ask, answer.reply, message=answer.message)
            self._act(approved, f"{answer.reply}: {one_line(ask.action)}")
        elif not isinstance(ask, PermissionRequest) and isinstance(answer, list):
            self._act(client.answer(ask, answer), "answered")

    def _act(self, act: Awaitable[None], done: str) -> None:
        self.run_worker(self._perform(act, done), exclusive=False)

    async def _perform(self, act: Awaitable[None], done: str) -> None:
        try:
            with explain_errors(self._connection.url):
                await act
            self.notify(done, markup=False)
        except CommandError as error:
            self.notify(str(error), severity="error", markup=False)
        await self.refresh_look()

    async def _listen(self) -> None:
        async with aclosing(follow_all(self._connection)) as events:
            async for event in events:
                self._meter.take(
                    event.type,
                    event.data,
                    is_live=event.is_live,
                    now_s=asyncio.get_running_loop().time(),
                    clock_ms=time.time() * 1000,
                )

    @property
    def _table(self) -> "DataTable[Text]":
        return self.query_one(DataTable)

    @property
    def _selected(self) -> ShownSession | None:
        rows, place = self._shown.rows, self._table.cursor_row
        return rows[place] if 0 <= place < len(rows) else None

    def _draw_summary(self) -> None:
        rates = self._meter.rates(asyncio.get_running_loop().time())
        text = summary_line(self._shown, rates)
        problem = f"\n! {self._problem}" if self._problem else ""
        self.query_one("#summary", Static).update(text + problem)

    def _draw_detail(self) -> None:
        row = self._selected
        self.query_one("#detail", Static).update("" if row is None else detail_text(row))


def summary_line(look: SessionsLook, rates: EventRates) -> str:
    """Counts, rates, lag and cost in one line."""
    lag = "-" if rates.lag_ms is None else f"{rates.lag_ms:.0f} ms"
    parts = (
        f"{look.amount_of('turns')} running",
        f"{sum(len(row.asks) for row in look.rows)} asking",
        f"{look.amount_of('pending')} pending",
        f"{look.amount_of('calls')} calls",
        f"{rates.events:.1f} events/s",
        f"{rates.tokens:.0f} tokens/s",
        f"lag {lag}",
        f"${look.usage.cost:.4f}",
        f"{look.usage.tokens:,} tokens",
    )
    return " · ".join(parts)


def detail_text(row: ShownSession) -> str:
    """Why the selected session works or rests, and what it asks."""
    lines = [f"{row.info.id}  {one_line(row.reason, 400)}"]
    for ask in row.asks:
        if isinstance(ask, PermissionRequest):
            asked = [f"{ask.action} {', '.join(ask.resources)}"]
        else:
            asked = [question.question for question in ask.questions]
        lines += [f"asks: {one_line(text, 200)}" for text in asked]
    return "\n".join(lines)


def _cells(row: ShownSession, title_length: int) -> tuple[Text, ...]:
    updated = datetime.fromtimestamp(row.info.time.updated / 1000, UTC).astimezone()
    return (
        Text(row.state, style=_STYLES.get(row.state, "")),
        Text(one_line(row.info.title, title_length)),
        Text(f"${row.cost:.4f}", justify="right"),
        Text(f"{row.tokens:,}", justify="right"),
        Text(f"{updated:%H:%M:%S}"),
        Text(one_line(row.model, 40)),
    )
