"""One session that an editor has open: follows its events, and waits for the end of its turns."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing, suppress
from typing import Any, Final

from acp.interfaces import Client
from acp.schema import PromptResponse, StopReason

from fairlead_cli.acp.editor_asks import EditorAsks
from fairlead_cli.acp.translation.prompt_blocks import JoinedPrompt
from fairlead_cli.acp.translation.replay import ANSWERED, ASKED, open_asks, without_reverted
from fairlead_cli.acp.translation.stop_reasons import stop_reason_of_finish, stop_reason_of_rest
from fairlead_cli.acp.translation.updates import UpdateTranslator
from fairlead_client import AsyncFairlead, ClientError, ReceivedEvent, Refused, mint_message_id
from fairlead_client.errors import PromptUnanswered, PromptWithdrawn
from fairlead_client.prompt_answer import AnswerCollector, is_under_way
from fairlead_schema.errors import MessageNotFound, SessionNotFound
from fairlead_service.supervise import cancel_and_wait
from fairlead_session.calls.child_ids import TASK, child_of

CHILD_PAUSE_S: Final = 0.3
_SETTLED: Final = frozenset({"tool.success", "tool.failed"})


class OpenSession:
    """The editor gets every event once and in order. The session goes on without the editor."""

    def __init__(
        self, fairlead: AsyncFairlead, editor: Client, session_id: str, translator: UpdateTranslator
    ) -> None:
        self.id = session_id
        self.translator = translator
        self.seq = 0
        """The last event that the editor has."""
        self._fairlead = fairlead
        self._editor = editor
        self._asks = EditorAsks(fairlead, editor, session_id)
        self._prompts: dict[str, AnswerCollector] = {}
        self._moved = asyncio.Condition()
        self._failure: Refused | ClientError | None = None
        self._following: asyncio.Task[None] | None = None
        self._children: dict[str, asyncio.Task[None]] = {}

    async def replay(self, *, shown: bool) -> None:
        """Take all events up to now. `shown`: the editor gets them as updates."""
        stream = self._fairlead.events(self.id, with_notices=True)
        events = [event async for event in stream]
        for event in without_reverted(events):
            for update in self.translator.take(event):
                if shown:
                    await self._editor.session_update(session_id=self.id, update=update)
        self.seq = max((event.seq or 0 for event in events), default=0)
        for event in open_asks(events):
            self._asks.ask(event)

    def follow(self) -> None:
        """Give the editor everything from now on."""
        self._following = asyncio.create_task(self._follow())

    async def close(self) -> None:
        """Give the editor nothing more."""
        tasks = [*self._children.values(), *([self._following] if self._following else [])]
        await cancel_and_wait(*tasks)
        await self._asks.close()

    async def prompt(self, prompt: JoinedPrompt) -> PromptResponse:
        """Admit a prompt, and wait until its turn has ended. Raises Refused, ClientError."""
        id_ = mint_message_id()
        self.translator.own_prompts.add(id_)
        collector = self._prompts[id_] = AnswerCollector(id_, after=self.seq)
        try:
            await self._fairlead.prompt(self.id, prompt.text, id=id_, files=prompt.files)
            return PromptResponse(stop_reason=await self._await_end(id_, collector))
        finally:
            del self._prompts[id_]

    async def cancel(self) -> None:
        """Stop the work, and withdraw the prompts of this editor that the model has not seen."""
        for id_ in list(self._prompts):
            with suppress(MessageNotFound, Refused):
                await self._fairlead.cancel(self.id, id_)
        await self._fairlead.interrupt(self.id)

    async def _await_end(self, id_: str, collector: AnswerCollector) -> StopReason:
        final = asyncio.create_task(self._wait_until(lambda: collector.is_final))
        resting = asyncio.create_task(self._await_rest())
        try:
            await asyncio.wait({final, resting}, return_when=asyncio.FIRST_COMPLETED)
            if final.done():
                final.result()
            if not collector.is_final:
                explanation = resting.result()
                reason = stop_reason_of_rest(explanation.get("code", ""))
                # Nobody stopped the turn, so its failure says more.
                if reason in {None, "end_turn"} and collector.failure is not None:
                    raise collector.failure
                if reason is None:
                    raise PromptUnanswered(id_, explanation)
                return reason
        finally:
            await cancel_and_wait(final, resting)
        if collector.answer is not None:
            return stop_reason_of_finish(collector.answer.finish)
        assert collector.failure is not None, "a final collector has an outcome"
        if isinstance(collector.failure, PromptWithdrawn):
            return "cancelled"
        raise collector.failure

    async def _await_rest(self) -> dict[str, Any]:
        """Wait until the session rests for good and the editor has all its events."""
        await self._fairlead.wait(self.id)
        while is_under_way(explanation := await self._fairlead.explain(self.id)):
            await asyncio.sleep(CHILD_PAUSE_S)
            await self._fairlead.wait(self.id)
        stream = self._fairlead.events(self.id, after=self.seq, with_notices=True)
        newest = max([event.seq or 0 async for event in stream], default=0)
        await self._wait_until(lambda: self.seq >= newest)
        return explanation

    async def _wait_until(self, condition: Callable[[], bool]) -> None:
        async with self._moved:
            await self._moved.wait_for(lambda: condition() or self._failure is not None)
        if self._failure is not None:
            raise self._failure

    async def _follow(self) -> None:
        try:
            async with aclosing(self._fairlead.follow(self.id, after=self.seq)) as events:
                async for event in events:
                    await self._take(event)
        except (Refused, ClientError) as failure:
            async with self._moved:
                self._failure = failure
                self._moved.notify_all()

    async def _take(self, event: ReceivedEvent) -> None:
        for update in self.translator.take(event):
            await self._editor.session_update(session_id=self.id, update=update)
        self._serve_people(event)
        if event.seq is None:
            return
        for collector in self._prompts.values():
            collector.take(event)
        async with self._moved:
            self.seq = event.seq
            self._moved.notify_all()

    def _serve_people(self, event: ReceivedEvent) -> None:
        data = event.data
        if event.type in ASKED:
            self._asks.ask(event)
        elif event.type in ANSWERED:
            self._asks.drop(data["requestID"])
        elif event.type == "tool.called" and data["tool"] == TASK:
            child = child_of(self.id, data["assistantMessageID"], data["callID"])
            self._children[data["callID"]] = asyncio.create_task(self._watch_child(child))
        elif event.type in _SETTLED and (task := self._children.pop(data["callID"], None)):
            task.cancel()

    async def _watch_child(self, child: str) -> None:
        """Ask here what a sub-agent asks: the editor knows only the session above it."""
        while True:
            with suppress(SessionNotFound):
                async with aclosing(self._fairlead.follow(child, after=0)) as events:
                    async for event in events:
                        if event.type in ASKED:
                            self._asks.ask(event)
                        elif event.type in ANSWERED:
                            self._asks.drop(event.data["requestID"])
            await asyncio.sleep(CHILD_PAUSE_S)
