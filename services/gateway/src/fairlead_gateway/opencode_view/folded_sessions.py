"""The sessions that a hub for terminal clients knows: folded, with their open texts."""

import logging
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Final, NamedTuple, TypeAlias

from fairlead_eventlog.errors import LogError
from fairlead_eventlog.ports import SessionLog
from fairlead_eventlog.register_ports import Snapshots
from fairlead_eventlog.replicas.commit_hint import CommitHint
from fairlead_eventlog.replicas.open_texts import OpenTextsPort
from fairlead_eventlog.replicas.tenant_broadcasts import TenantBroadcasts
from fairlead_eventlog.session_cache import SessionCache
from fairlead_gateway.live.open_texts import OpenBlocks
from fairlead_gateway.opencode_view.translation.changes import View, changes, fragment, snapshot
from fairlead_gateway.opencode_view.translation.message_fields import TextKey
from fairlead_gateway.opencode_view.translation.sessions import IDLE, WithDefaults, status_of
from fairlead_gateway.reads.read_model import ReadModel
from fairlead_schema.delta import Delta, ReasoningDelta, TextDelta
from fairlead_schema.ids import SessionId
from fairlead_schema.raw_records.raw_commit import raw_commit
from fairlead_schema.record import RecordError, decode
from fairlead_schema.subjects import Address
from fairlead_session.execution.commands import is_archived
from fairlead_session.fold.snapshot import SESSION_FOLD
from fairlead_session.state.session import Session

log = logging.getLogger(__name__)

SESSIONS_MAX: Final = 256
BYTES_MAX: Final = 64 * 1024 * 1024
OPEN_TEXTS_S: Final = 1.0
OLD_S: Final = 24 * 60 * 60.0

Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ViewSources:
    """What the hub reads from. A new connection to NATS has new sources, and gets new hubs."""

    broadcasts: TenantBroadcasts
    log: SessionLog
    snapshots: Snapshots
    open_texts: OpenTextsPort
    read_model: ReadModel
    with_defaults: WithDefaults = field(compare=False)


class Told(NamedTuple):
    """A state of a session, and the events that lead to it."""

    session: Session
    events: list[Json]


class FoldedSessions:
    """The sessions that changed lately. Only one task at a time may fold them."""

    def __init__(self, sources: ViewSources) -> None:
        self._sources = sources
        self._cache = SessionCache(
            sources.log,
            sources.snapshots,
            SESSION_FOLD,
            capacity=SESSIONS_MAX,
            bytes_max=BYTES_MAX,
        )
        self._blocks: dict[Address, OpenBlocks] = {}
        self._changed: dict[Address, float] = {}

    def peek(self, at: Address) -> Session | None:
        """The session, if the hub knows it."""
        known = self._cache.peek(at)
        return None if known is None else known.state

    def list_known(self) -> Iterator[tuple[Address, Session, float]]:
        """Every session that lists show, and the seconds since it changed; the newest change first."""
        now = monotonic()
        for at, changed in sorted(self._changed.items(), key=lambda item: item[1], reverse=True):
            session = self.peek(at)
            if session is not None and session.profile is not None and not is_archived(session):
                yield at, session, now - changed

    def statuses(self) -> dict[SessionId, Json]:
        """The status of every session that the hub knows."""
        known = ((at, self._cache.peek(at)) for at in self._changed)
        return {at.session_id: status_of(one.state) for at, one in known if one is not None}

    def find_ask(self, request_id: str) -> SessionId | None:
        """The session of an open ask that the hub knows."""
        for at in self._changed:
            one = self._cache.peek(at)
            if one is not None:
                asks = one.state.asks
                if request_id in asks.permissions or request_id in asks.questions:
                    return at.session_id
        return None

    async def fold(self, at: Address, hint: CommitHint) -> Told | None:
        """Fold a commit, and tell what changed; None if it is no news."""
        known = self._cache.peek(at)
        if known is not None and hint.position <= known.head.position:
            return None
        try:
            before = known or await self._cache.load_before(at, hint.position)
            after = self._cache.fold_next(at, hint) or await self._cache.load(
                at, reach=hint.position
            )
            commit = decode(hint.payload)
        except RecordError as error:
            log.info("a commit cannot be read: terminal clients miss it", extra={"at": str(error)})
            return None
        mark = commit.events[0].imported
        if after.state.stored is not None or (mark is not None and not mark.publish):
            return None  # A stored session is not deleted: clients keep what they show.
        blocks = self._blocks.setdefault(at, OpenBlocks())
        blocks.note(raw_commit(commit).events)
        self._changed[at] = monotonic()
        self._forget_old()
        view = self.view(at, after.state)
        if before is None:
            # A snapshot was stored since then, so nobody can say what the commit changed.
            return Told(after.state, snapshot(view, whole=True))
        return Told(after.state, changes(before.state, view, is_met=known is None))

    async def receive(self, at: Address, delta: Delta) -> Told | None:
        """The pieces of open texts that clients may have now."""
        if not isinstance(delta, TextDelta | ReasoningDelta):
            return None
        known = self._cache.peek(at)
        blocks = self._blocks.setdefault(at, OpenBlocks())
        news: Iterable[Delta | None] = (blocks.receive(delta),)
        if known is None:
            return None
        if blocks.has_gap:
            news = await self._ask_owner(at, known.state, blocks)
        # A text whose beginning is not in the log yet is told whole when it is.
        found = (
            fragment(known.state, piece)
            for piece in news
            if isinstance(piece, TextDelta | ReasoningDelta)
        )
        return Told(known.state, [one for one in found if one is not None])

    async def _ask_owner(self, at: Address, session: Session, blocks: OpenBlocks) -> list[Delta]:
        owner = session.execution.owner
        if owner is not None:
            with suppress(LogError):
                ask = self._sources.open_texts.ask
                return blocks.restore(await ask(owner.runner, at, timeout_s=OPEN_TEXTS_S))
        return blocks.skip_gaps()

    async def load_unknown(self, at: Address, *, age_s: float = OLD_S) -> Told | None:
        """Fold a session that is not known yet, and tell its turn if it works.

        `age_s`: how long ago it changed, as far as somebody knows.
        """
        if self._cache.peek(at) is not None:
            return None
        try:
            loaded = await self._cache.load_confirmed(at)
        except (RecordError, LogError) as error:
            log.info("a session cannot be read: terminal clients miss it", extra={"at": str(error)})
            return None
        session = loaded.state
        self._changed[at] = monotonic() - age_s
        self._forget_old()
        if session.profile is None or status_of(session) == IDLE:
            return None
        blocks = self._blocks.setdefault(at, OpenBlocks())
        owner = session.execution.owner
        if owner is not None:
            await self._ask_owner(at, session, blocks)
        return Told(session, snapshot(self.view(at, session), whole=True))

    async def refresh(self, at: Address) -> Told | None:
        """Read a known session as the log has it, and tell what no broadcast brought."""
        known = self._cache.peek(at)
        try:
            loaded = await self._cache.load_confirmed(at)
        except (RecordError, LogError) as error:
            log.info("a session cannot be read: terminal clients miss it", extra={"at": str(error)})
            return None
        if known is None or loaded.head == known.head:
            return None
        return Told(loaded.state, changes(known.state, self.view(at, loaded.state)))

    def view(self, at: Address, session: Session) -> View:
        """A state of a session with its open texts."""
        blocks = self._blocks.get(at)
        texts: dict[TextKey, str] = {}
        for delta in () if blocks is None else blocks.so_far():
            match delta:
                case TextDelta():
                    texts[delta.assistant_message_id, delta.text_id] = delta.delta
                case ReasoningDelta():
                    texts[delta.assistant_message_id, delta.reasoning_id] = delta.delta
                case _:
                    pass
        return View(session, self._sources.with_defaults, texts)

    def _forget_old(self) -> None:
        while len(self._changed) > SESSIONS_MAX:
            oldest = min(self._changed, key=lambda at: self._changed[at])
            del self._changed[oldest]
            self._blocks.pop(oldest, None)
