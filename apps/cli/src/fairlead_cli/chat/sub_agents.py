"""Follows the sub-agents that work for a session: what they do, what they ask, what they cost."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Final

from fairlead_cli.chat.view.ask_text import ShownAsk, shown_asks
from fairlead_cli.chat.view.call_card import card_title
from fairlead_cli.chat.view.entries import CallEntry, TextEntry
from fairlead_cli.chat.view.fold import fold
from fairlead_cli.chat.view.plain_text import one_line
from fairlead_cli.chat.view.session_view import SessionView
from fairlead_client import AsyncFairlead, ClientError, Refused

BIRTH_S: Final = 0.3
"""A sub-agent's session may begin some time after its call."""


class SubAgents:
    """The sub-agents of one session that run now."""

    def __init__(self, fairlead: AsyncFairlead, on_change: Callable[[], None]) -> None:
        self._fairlead = fairlead
        self._on_change = on_change
        self._views: dict[str, SessionView] = {}
        self._names: dict[str, str] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._looked = 0

    @property
    def asks(self) -> list[ShownAsk]:
        """What the sub-agents ask."""
        return [
            ask
            for id_, view in self._views.items()
            if id_ in self._tasks
            for ask in shown_asks(view, self._names[id_])
        ]

    @property
    def cost(self) -> float:
        """What the sub-agents that were followed have cost."""
        return sum(view.cost for view in self._views.values())

    def close(self) -> None:
        """Stop following, and forget all of them."""
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()
        self._views.clear()

    def look(self, view: SessionView) -> None:
        """Follow calls that a sub-agent answers now, and leave those that have ended."""
        for entry in view.entries[-40:]:
            if not isinstance(entry, CallEntry) or entry.child is None:
                continue
            if entry.ended and (task := self._tasks.pop(entry.child, None)) is not None:
                task.cancel()
            elif not entry.ended and entry.child not in self._views:
                self._views[entry.child] = SessionView(entry.child)
                self._names[entry.child] = one_line(str(entry.input.get("agent", "")), 30)
                task = asyncio.get_running_loop().create_task(self._follow(entry))
                self._tasks[entry.child] = task

    async def _follow(self, call: CallEntry) -> None:
        assert call.child is not None, "only a sub-agent's call is followed"
        view = self._views[call.child]
        while True:
            try:
                async with aclosing(self._fairlead.follow(call.child, after=0)) as events:
                    async for event in events:
                        fold(view, event)
                        line = describe(view)
                        if line != call.child_line:
                            call.child_line, call.revision = line, call.revision + 1
                        self._on_change()
            except (ClientError, Refused):
                await asyncio.sleep(BIRTH_S)


def describe(view: SessionView) -> str:
    """What a sub-agent does, in one line."""
    calls = sum(isinstance(entry, CallEntry) for entry in view.entries)
    last = next(
        (entry for entry in reversed(view.entries) if isinstance(entry, CallEntry | TextEntry)),
        None,
    )
    match last:
        case CallEntry():
            doing = f"{last.tool} {card_title(last)}"
        case TextEntry():
            doing = last.text.strip().rpartition("\n")[2]
        case _:
            doing = "begins"
    count = f"{calls} calls · " if calls > 1 else ""
    return one_line(f"{count}{doing}", 200)
