"""One session that an editor has open: follows its events, and waits for the end of its turns."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing, suppress
from typing import Any

from acp.interfaces import Client
from acp.schema import PromptResponse, StopReason

from fairlead_cli.acp.ask_watcher import CHILD_PAUSE_S, AskWatcher
from fairlead_cli.acp.translation.prompt_blocks import JoinedPrompt, file_name, large_content
from fairlead_cli.acp.translation.replay import without_reverted
from fairlead_cli.acp.translation.stop_reasons import stop_reason_of_finish, stop_reason_of_rest
from fairlead_cli.acp.translation.updates import UpdateTranslator
from fairlead_client import AsyncFairlead, ClientError, ReceivedEvent, Refused, mint_message_id
from fairlead_client.errors import PromptUnanswered, PromptWithdrawn
from fairlead_client.prompt_answer import AnswerCollector, is_under_way
from fairlead_schema.prompt import FileInput
from fairlead_service.supervise import cancel_and_wait


class SessionClosed(Exception):
    """The editor closed the session."""


class OpenSession:
    """The editor gets every event once and in order. The session goes on without the editor."""

    def __init__(
        self,
        fairlead: AsyncFairlead,
        editor: Client,
        session_id: str,
        translator: UpdateTranslator,
        watcher: AskWatcher,
    ) -> None:
        self.id = session_id
        self.translator = translator
        self.seq = 0
        """The last event that the editor has."""
        self._fairlead = fairlead
        self._editor = editor
        self._watcher = watcher
        self._prompts: dict[str, AnswerCollector] = {}
        self._admitting = asyncio.Lock()
        self._moved = asyncio.Condition()
        self._end: Exception | None = None
        """Why nothing comes any more."""
        self._following: asyncio.Task[None] | None = None

    async def replay(self, *, shown: bool) -> None:
        """Take all events up to now. `shown`: the editor gets them as updates."""
        stream = self._fairlead.events(self.id, with_notices=True)
        events = [event async for event in stream]
        for event in without_reverted(events):
            for update in self.translator.take(event):
                if shown:
                    await self._editor.session_update(session_id=self.id, update=update)
        self.seq = max((event.seq or 0 for event in events), default=0)
        self._watcher.begin(self.id, events)

    @property
    def has_prompts(self) -> bool:
        """Whether a prompt of this editor is under way."""
        return bool(self._prompts)

    def follow(self) -> None:
        """Give the editor everything from now on."""
        self._following = asyncio.create_task(self._follow())

    async def close(self, reason: Exception) -> None:
        """Give the editor nothing more. Prompts that are under way end with the reason."""
        await cancel_and_wait(*([self._following] if self._following else []))
        await self._watcher.close()
        await self._end_with(reason)

    async def prompt(self, prompt: JoinedPrompt) -> PromptResponse:
        """Admit a prompt, and wait until its turn has ended. Raises Refused, ClientError."""
        if self._end is not None:
            raise self._end
        id_ = mint_message_id()
        self.translator.own_prompts.add(id_)
        collector = self._prompts[id_] = AnswerCollector(id_, after=self.seq)
        try:
            # Prompts keep their order, and a cancel comes after what it shall stop.
            async with self._admitting:
                files = [await self._store(file) for file in prompt.files]
                await self._fairlead.prompt(self.id, prompt.text, id=id_, files=tuple(files))
            return PromptResponse(stop_reason=await self._await_end(id_, collector))
        except SessionClosed:
            return PromptResponse(stop_reason="cancelled")
        finally:
            del self._prompts[id_]

    async def cancel(self) -> None:
        """Stop the work, and withdraw the prompts of this editor that the model has not seen."""
        async with self._admitting:
            for id_ in list(self._prompts):
                with suppress(Refused):
                    await self._fairlead.cancel(self.id, id_)
            await self._fairlead.interrupt(self.id)

    async def _store(self, file: FileInput) -> FileInput:
        """The file as a prompt may name it: a large one is in the store of the session."""
        content = large_content(file)
        if content is None:
            return file
        stored = await self._fairlead.upload(self.id, content, name=file_name(file))
        return FileInput(uri=stored["uri"], name=file_name(file))

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
            await self._moved.wait_for(lambda: condition() or self._end is not None)
        if self._end is not None and not condition():
            raise self._end

    async def _follow(self) -> None:
        if commands := self.translator.options.available_commands():
            await self._editor.session_update(session_id=self.id, update=commands)
        try:
            async with aclosing(self._fairlead.follow(self.id, after=self.seq)) as events:
                async for event in events:
                    await self._take(event)
        except (Refused, ClientError) as failure:
            await self._end_with(failure)

    async def _end_with(self, reason: Exception) -> None:
        async with self._moved:
            self._end = reason
            self._moved.notify_all()

    async def _take(self, event: ReceivedEvent) -> None:
        for update in self.translator.take(event):
            await self._editor.session_update(session_id=self.id, update=update)
        self._watcher.take(self.id, event)
        if event.seq is None:
            return
        for collector in self._prompts.values():
            collector.take(event)
        async with self._moved:
            self.seq = event.seq
            self._moved.notify_all()
