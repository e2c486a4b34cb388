"""Rules about requests that change files: reverts, and moves with changes."""

from collections.abc import Callable, Iterator
from typing import ClassVar, Final, TypeAlias

from fairlead_schema.events import (
    AttemptDispatched,
    CompactionStarted,
    MoveBegun,
    MoveEnded,
    MoveFailed,
    MoveRequested,
    PromptPromoted,
    RevertBegun,
    RevertCleared,
    RevertCommitted,
    RevertFailed,
    RevertRequested,
    RevertStaged,
    SessionEvent,
    SessionMoved,
    ShellStarted,
)

Findings: TypeAlias = Iterator[tuple[str, str]]
EventKinds: TypeAlias = frozenset[type[SessionEvent]]
IsOwned: TypeAlias = Callable[[], bool]

WORK: Final[EventKinds] = frozenset(
    {AttemptDispatched, CompactionStarted, PromptPromoted, ShellStarted}
)
"""Events that begin work. None may stand between an intent to change files and its end."""


class RevertRules:
    """A revert is requested, begins at most once, and ends once, by an owner and before other work."""

    kinds: ClassVar[EventKinds] = WORK | {
        RevertRequested,
        RevertBegun,
        RevertStaged,
        RevertCleared,
        RevertFailed,
        RevertCommitted,
        SessionMoved,
    }

    def __init__(self, is_owned: IsOwned) -> None:
        self._is_owned = is_owned
        self._requested: str | None = None
        self._begun = False

    def check(self, event: SessionEvent) -> Findings:
        match event:
            case RevertRequested(action=action):
                if self._requested is not None:
                    yield "revert-once", f"{action} is requested before {self._requested} has ended"
                self._requested, self._begun = action, False
            case RevertBegun():
                yield from self._check_begun()
            case RevertStaged() | RevertCleared() | RevertFailed():
                yield from self._check_ended(event)
            case RevertCommitted() | SessionMoved():
                if self._requested is not None:
                    yield "revert-ended", f"{event.type} before {self._requested} has ended"
            case AttemptDispatched() | CompactionStarted() | PromptPromoted() | ShellStarted():
                if self._begun:
                    yield "revert-alone", f"{event.type} while files change back"
            case _:
                pass

    def _check_begun(self) -> Findings:
        if self._requested is None:
            yield "revert-requested", "files change back and nobody asked for it"
        if self._begun:
            yield "revert-once", "the same request begins a second time"
        if not self._is_owned():
            yield "revert-owned", "files change back and nobody owns the session"
        self._begun = True

    def _check_ended(self, event: RevertStaged | RevertCleared | RevertFailed) -> Findings:
        wrong = {RevertStaged: "clear", RevertCleared: "stage"}.get(type(event))
        if self._requested is None:
            yield "revert-requested", f"{event.type} without a request"
        elif self._requested == wrong:
            yield "revert-ended", f"{event.type} ends a request to {self._requested}"
        if not self._is_owned():
            yield "revert-owned", f"{event.type} and nobody owns the session"
        self._requested, self._begun = None, False


class MoveRules:
    """A move with changes is requested, begins at most once, moves once, and ends once."""

    kinds: ClassVar[EventKinds] = WORK | {
        MoveRequested,
        MoveBegun,
        SessionMoved,
        MoveFailed,
        MoveEnded,
        RevertRequested,
    }

    def __init__(self, is_owned: IsOwned) -> None:
        self._is_owned = is_owned
        self._requested = self._begun = self._moved = False

    def check(self, event: SessionEvent) -> Findings:
        match event:
            case MoveRequested():
                if self._requested:
                    yield "move-once", "a move is requested before the last one has ended"
                self._requested, self._begun, self._moved = True, False, False
            case MoveBegun():
                yield from self._check_begun(event)
            case SessionMoved():
                if self._moved:
                    yield "move-once", "the session moves a second time for one request"
                self._moved = self._requested
            case MoveFailed() | MoveEnded():
                yield from self._check_ended(event)
            case RevertRequested():
                if self._requested:
                    yield "move-alone", f"{event.type} before the move has ended"
            case AttemptDispatched() | CompactionStarted() | PromptPromoted() | ShellStarted():
                if self._begun:
                    yield "move-alone", f"{event.type} while changes are transferred"
            case _:
                pass

    def _check_begun(self, event: MoveBegun) -> Findings:
        if not self._requested:
            yield "move-requested", "changes are transferred and nobody asked for it"
        if self._begun or self._moved:
            yield "move-once", "the same request begins a second time"
        yield from self._check_owned(event)
        self._begun = True

    def _check_ended(self, event: MoveFailed | MoveEnded) -> Findings:
        if not self._requested:
            yield "move-requested", f"{event.type} without a request"
        elif self._moved is isinstance(event, MoveFailed):
            yield "move-ended", f"{event.type} after {'the' if self._moved else 'no'} move"
        yield from self._check_owned(event)
        self._requested = self._begun = self._moved = False

    def _check_owned(self, event: SessionEvent) -> Findings:
        if not self._is_owned():
            yield "move-owned", f"{event.type} and nobody owns the session"
