"""Verifies asks: each is asked once and answered once, and its call does not run in between."""

from collections.abc import Iterator
from typing import ClassVar, TypeAlias

from fairlead_schema.events import (
    PermissionAsked,
    PermissionReplied,
    QuestionAsked,
    QuestionRejected,
    QuestionReplied,
    SessionEvent,
    ToolStarted,
)
from fairlead_schema.ids import CallId, MessageId
from fairlead_schema.record import Recorded

Findings: TypeAlias = Iterator[tuple[str, str]]
EventKinds: TypeAlias = frozenset[type[SessionEvent]]
CallKey: TypeAlias = tuple[MessageId, CallId]


class AskRules:
    """An ask is answered exactly once. Its call does not start before the answer."""

    kinds: ClassVar[EventKinds] = frozenset(
        {
            PermissionAsked,
            QuestionAsked,
            PermissionReplied,
            QuestionReplied,
            QuestionRejected,
            ToolStarted,
        }
    )

    def __init__(self) -> None:
        self.pending: dict[str, CallKey | None] = {}
        self._asked: set[str] = set()
        self._started: set[CallKey] = set()
        self._callers_named = False

    @property
    def calls(self) -> set[CallKey]:
        """The calls that wait for people. A started call does not wait."""
        return {key for key in self.pending.values() if key is not None} - self._started

    def check(self, event: SessionEvent) -> Findings:
        match event:
            case PermissionAsked() | QuestionAsked():
                yield from self._check_asked(event)
            case (
                PermissionReplied(request_id=id_)
                | QuestionReplied(request_id=id_)
                | QuestionRejected(request_id=id_)
            ):
                if id_ not in self.pending:
                    yield "answered-once", f"{id_} is answered and does not wait"
                self.pending.pop(id_, None)
            case ToolStarted():
                key = (event.assistant_message_id, event.call_id)
                if key in self.calls:
                    yield "started-permitted", f"{event.call_id} is started while a person is asked"
                self._started.add(key)
            case _:
                pass

    def check_caller(self, recorded: Recorded) -> tuple[tuple[str, str], ...]:
        """In a log that names callers, every approval names who gave it."""
        event, is_named = recorded.event, recorded.by is not None
        self._callers_named = self._callers_named or is_named
        if is_named or not self._callers_named or not isinstance(event, PermissionReplied):
            return ()
        if event.reply == "reject":
            return ()
        return (("approved-by", f"{event.request_id} is approved by nobody"),)

    def _check_asked(self, event: PermissionAsked | QuestionAsked) -> Findings:
        request = event.request
        if request.id in self._asked:
            yield "asked-once", f"{request.id} is asked a second time"
        source = event.request.source if isinstance(event, PermissionAsked) else event.request.tool
        key = None if source is None else (source.message_id, source.call_id)
        self._asked.add(request.id)
        self.pending[request.id] = key
