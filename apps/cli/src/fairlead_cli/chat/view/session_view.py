"""Everything that the terminal shows of one session."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, TypeVar

from fairlead_cli.chat.view.entries import AnyEntry, CallEntry, NoticeLevel, WaitingPrompt
from fairlead_cli.chat.view.entries import NoticeEntry as Notice
from fairlead_cli.chat.view.plain_text import clean
from fairlead_schema.ids import MessageId, SessionId
from fairlead_schema.permission import PermissionRequest, QuestionRequest

Ask: TypeAlias = PermissionRequest | QuestionRequest
Activity: TypeAlias = Literal["resting", "working", "stopping"]
Kind = TypeVar("Kind", bound=AnyEntry)
SAID: Final = "said/"
"""The beginning of the keys of what the terminal itself says. An undo does not take it away."""
_MOVES: Final = frozenset({"running", "queued", "waiting"})
# Reasons to rest that need no sentence: the transcript has said it already.
SAID_RESTS: Final = frozenset({"idle", "interrupted", "failed", "declined", "archived"})


@dataclass(slots=True)
class SessionView:
    """One session. Only the fold changes it."""

    session_id: SessionId
    entries: list[AnyEntry] = field(default_factory=list)
    inbox: dict[MessageId, WaitingPrompt] = field(default_factory=dict)
    asks: dict[str, Ask] = field(default_factory=dict)
    title: str = ""
    agent: str = ""
    model: str = ""
    directory: str = ""
    cost: float = 0.0
    tokens: int = 0
    """How many tokens the last request and its answer had: so much of the window is in use."""
    todo: str = ""
    """The item of the todo list that is worked on."""
    activity: Activity = "resting"
    reason: str = ""
    """Why the session rests, if it does not rest because all is done."""
    boundary: MessageId | None = None
    """The last message that stays, while an undo is staged."""
    hides_boundary: bool = False
    """Whether an undo took that message too."""
    shape: int = 0
    """Counts up when entries come or go."""
    by_key: dict[str, AnyEntry] = field(default_factory=dict)

    def add(self, entry: Kind) -> Kind:
        """Put an entry at the end."""
        self.entries.append(entry)
        self.by_key[entry.key] = entry
        self.shape += 1
        return entry

    def remove(self, *entries: AnyEntry) -> None:
        """Take entries away."""
        gone = {entry.key for entry in entries}
        self.entries = [entry for entry in self.entries if entry.key not in gone]
        for key in gone:
            self.by_key.pop(key, None)
        self.shape += 1

    def notice(self, key: str, text: str, level: NoticeLevel = "info") -> None:
        """Say one sentence, once for each key."""
        if key not in self.by_key:
            self.add(Notice(key=key, message_id="", text=clean(text), level=level))

    def call(self, call_id: str) -> CallEntry | None:
        """The entry of a call."""
        entry = self.by_key.get(f"call/{call_id}")
        return entry if isinstance(entry, CallEntry) else None

    def settle(self, explanation: dict[str, Any]) -> None:
        """Take what the server says about the session's rest, which no public event says."""
        moves = explanation.get("state") in _MOVES
        self.activity = "working" if moves else "resting"
        is_said = moves or explanation.get("code") in SAID_RESTS
        self.reason = "" if is_said else str(explanation.get("reason", ""))

    @property
    def shown(self) -> list[AnyEntry]:
        """The entries without those that a staged undo took."""
        if self.boundary is None:
            return self.entries
        kept = [i for i, entry in enumerate(self.entries) if entry.message_id == self.boundary]
        end = 0 if not kept else kept[0] if self.hides_boundary else kept[-1] + 1
        return [
            entry for i, entry in enumerate(self.entries) if i < end or entry.key.startswith(SAID)
        ]

    @property
    def state(self) -> str:
        """What the session does, in one word for the status line."""
        if self.asks:
            return "asks you"
        if self.activity == "resting" and self.inbox:
            return "waiting"
        return {"resting": "ready", "working": "working", "stopping": "stopping"}[self.activity]


EventHandler: TypeAlias = Callable[[SessionView, dict[str, Any]], None]
"""Folds the data of one type of event."""
