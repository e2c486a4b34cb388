"""Follows one session and its sub-agents through every interruption, and keeps what is shown of them."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import aclosing
from typing import Any, Final, NamedTuple, TypeVar

from fairlead_cli.chat.attachments import Attachment
from fairlead_cli.chat.chat_start import ChatStart
from fairlead_cli.chat.sub_agents import SubAgents
from fairlead_cli.chat.view.ask_text import ShownAsk, shown_asks
from fairlead_cli.chat.view.fold import fold
from fairlead_cli.chat.view.session_view import SessionView
from fairlead_client import (
    AsyncFairlead,
    ClientError,
    Refused,
    mint_message_id,
    mint_session_id,
)
from fairlead_client.errors import ServerAway
from fairlead_client.prompt_input import PromptFields
from fairlead_client.retry_policy import is_passing
from fairlead_schema.errors import (
    CursorExpired,
    ServiceUnavailable,
    SessionNotFound,
    Unauthorized,
)
from fairlead_schema.ids import SessionId
from fairlead_schema.permission import PermissionRequest, QuestionRequest, Reply
from fairlead_schema.prompt import Delivery, FileInput

Answer = TypeVar("Answer")
EVENTS_AT_ONCE: Final = 200
"""After so many events of a replay other work gets its turn, so that keys are answered."""
QUIET_S: Final = 0.6
ASK_AGAIN_S: Final = 5.0
RETRY_S: Final = 2.0
DELETED: Final = "This session was deleted. /sessions picks another one, /new begins one."
SIGNED_OUT: Final = (
    "The server refuses the token, so nothing new is shown. Renew it (`fairlead token`): with a token in a"
    " file this goes on by itself, else start again with --token."
)


class SentPrompt(NamedTuple):
    """A prompt on its way."""

    text: str
    task: asyncio.Task[Any] | None


class SessionLink:
    """The session that is shown. `on_change` is called when there is something new to show."""

    def __init__(
        self, fairlead: AsyncFairlead, start: ChatStart, on_change: Callable[[], None]
    ) -> None:
        self.fairlead = fairlead
        self.start = start
        self.view = SessionView("")
        self.sending: dict[str, SentPrompt] = {}
        """Prompts without a receipt, by their ids."""
        self.is_deleted = False
        self._on_change = on_change
        self._seq = 0
        self._new_id = mint_session_id()
        self._heard = self._explained = 0.0
        self._tasks: set[asyncio.Task[None]] = set()
        self.sub_agents = SubAgents(fairlead, on_change)

    @property
    def asks(self) -> list[ShownAsk]:
        """What people are asked, by this session or by its sub-agents."""
        return shown_asks(self.view) + self.sub_agents.asks

    def open(self, session_id: SessionId) -> None:
        """Show a session from its beginning, instead of the one before."""
        self.close()
        self.view, self._seq, self.is_deleted = SessionView(session_id), 0, False
        self._run(self._follow())
        self._run(self._watch())

    def begin(self) -> None:
        """Show nothing: the next prompt begins a session."""
        self.close()
        self.view, self._seq, self.is_deleted = SessionView(""), 0, False
        self._new_id = mint_session_id()
        self.view.agent, self.view.model = self.start.agent or "", self.start.model or ""

    def close(self) -> None:
        """Stop following."""
        for task in self._tasks:
            task.cancel()
        self._tasks.clear()
        self.sub_agents.close()

    def say_signed_out(self) -> None:
        """Say that the token is refused, once for each place in the log."""
        self.view.notice(f"token/{self._seq}", SIGNED_OUT, "error")
        self._on_change()

    async def send(
        self, text: str, delivery: Delivery, attachments: Sequence[Attachment] = ()
    ) -> None:
        """Send a prompt, in a new session if there is none, as soon as the server answers. Raises Refused.

        While nobody answers it is sent again under the same id: an earlier try may have arrived.
        """
        message_id = mint_message_id()
        self.sending[message_id] = SentPrompt(text, asyncio.current_task())
        self._on_change()
        try:
            session_id = await self.ensure_session()
            files = [await self._store(session_id, attachment) for attachment in attachments]
            fields: PromptFields = {"files": files} if files else {}
            await _until_answered(
                lambda: self.fairlead.prompt(
                    session_id, text, id=message_id, delivery=delivery, **fields
                )
            )
        finally:
            self.sending.pop(message_id, None)
            self._on_change()

    def withdraw(self) -> str | None:
        """Take the last prompt back that has no receipt; None without one."""
        for sent in reversed(self.sending.values()):
            if sent.task is not None:
                sent.task.cancel()
            return sent.text
        return None

    async def ensure_session(self) -> SessionId:
        """The session that is shown, which is created first if there is none."""
        if not self.view.session_id:
            start, view = self.start, self.view
            session = await _until_answered(
                lambda: self.fairlead.create(
                    id=self._new_id,
                    agent=start.agent,
                    model=start.model,
                    directory=start.directory,
                )
            )
            if self.view is view:
                self.open(session.id)
            return session.id
        return self.view.session_id

    async def approve(self, request: PermissionRequest, reply: Reply, message: str | None) -> None:
        """Answer a permission request."""
        await self.fairlead.approve(request, reply, message=message)

    async def answer(self, request: QuestionRequest, answers: list[list[str]]) -> None:
        """Answer questions."""
        await self.fairlead.answer(request, answers)

    async def interrupt(self) -> None:
        """Stop the running work."""
        if self.view.session_id:
            await self.fairlead.interrupt(self.view.session_id)

    async def _store(self, session_id: SessionId, attachment: Attachment) -> FileInput:
        content, name = attachment.content, attachment.name
        stored = await _until_answered(lambda: self.fairlead.upload(session_id, content, name=name))
        return FileInput(uri=stored["uri"], name=attachment.name)

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _follow(self) -> None:
        """Fold every event, for ever. Only a deleted session ends it."""
        while True:
            try:
                await self._follow_once()
            except SessionNotFound:
                self.is_deleted = True
                self.view.notice("deleted", DELETED, "error")
                self.view.activity = "resting"
                self._on_change()
                return
            except CursorExpired:
                # The log was restored from a backup: what was read may never have happened.
                self.view, self._seq = SessionView(self.view.session_id), 0
            except Unauthorized:
                self.say_signed_out()
            except (ClientError, Refused) as error:
                self.view.notice(f"broken/{self._seq}", str(error), "error")
            self._on_change()
            await asyncio.sleep(RETRY_S)

    async def _follow_once(self) -> None:
        view, count = self.view, 0
        async with aclosing(self.fairlead.follow(view.session_id, after=self._seq)) as events:
            async for event in events:
                self._seq = self._seq if event.seq is None else event.seq
                self._heard = time.monotonic()
                fold(view, event)
                self.sub_agents.look(view)
                self._on_change()
                count += 1
                if count % EVENTS_AT_ONCE == 0:
                    await asyncio.sleep(0)

    async def _watch(self) -> None:
        """Ask what a quiet session does: a runner may have died, and older servers do not say rests."""
        while True:
            await asyncio.sleep(QUIET_S / 2)
            now = time.monotonic()
            is_quiet = now - self._heard > QUIET_S
            is_new = self._explained < self._heard
            is_old = self.view.activity != "resting" and now - self._explained > ASK_AGAIN_S
            if not (self._heard and is_quiet and (is_new or is_old)):
                continue
            heard = self._heard
            self._explained = now
            try:
                explanation = await self.fairlead.explain(self.view.session_id)
            except (ClientError, Refused):
                continue
            if heard == self._heard:
                self.view.settle(explanation)
                self._on_change()


async def _until_answered(send: Callable[[], Awaitable[Answer]]) -> Answer:
    """The answer of the server, however long it is away. Raises Refused and ClientError."""
    while True:
        try:
            return await send()
        except (ServerAway, ServiceUnavailable) as error:
            if not is_passing(error, is_repeatable=True):
                raise
            await asyncio.sleep(RETRY_S)
