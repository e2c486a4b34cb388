"""The history of a request, extended from turn to turn instead of built again.

Lines never change. A history whose lines begin with those of an earlier history keeps its turns, its
size and its hashes, so a turn costs the same in a short and in a long session.
"""

import hashlib
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from pydantic_core import to_json

from fairlead_schema.catalog import ModelRef
from fairlead_schema.provider.request import Turn
from fairlead_session.compaction.estimate import text_units
from fairlead_session.compaction.pruning import prune_message
from fairlead_session.media.attachment_parts import stored_units
from fairlead_session.persistent import PersistentList
from fairlead_session.state.model_requests import PruneCutoff
from fairlead_session.state.session import Session
from fairlead_session.state.transcript import TranscriptLine
from fairlead_session.turn.history import HistoryStart, history_start
from fairlead_session.turn.lowering import lower

HASH_LENGTH: Final = 12


@dataclass(frozen=True, slots=True)
class LoweredHistory:
    """The turns of all messages for one model, the size of their JSON, and their hashes.

    `chain` has the hash of the first 0, 1, 2… turns.
    """

    model: ModelRef
    cutoff: PruneCutoff | None
    start: HistoryStart
    lines: PersistentList[TranscriptLine] = field(default_factory=PersistentList)
    turns: tuple[Turn, ...] = ()
    units: int = 0
    chain: tuple[str, ...] = ("",)
    running: "hashlib._Hash" = field(default_factory=sha256, compare=False)

    def continues_in(self, session: Session, other: "LoweredHistory") -> bool:
        """Whether the session begins with the lines of this history, and `other` begins like it."""
        same = (self.model, self.cutoff, self.start) == (other.model, other.cutoff, other.start)
        return same and self.lines.shared_length(session.transcript.lines) == len(self.lines)


def lower_history(
    session: Session, model: ModelRef, known: LoweredHistory | None = None
) -> LoweredHistory:
    """The history of the session's next request; `known` saves the work for its messages."""
    empty = LoweredHistory(model, session.requests.prune_cutoff, history_start(session))
    if known is None or not known.continues_in(session, empty):
        known = empty
    return _extend(known, session.transcript.lines)


def _extend(known: LoweredHistory, lines: PersistentList[TranscriptLine]) -> LoweredHistory:
    newer = filter(known.start.includes, lines.items_from(len(known.lines)))
    turns = lower(tuple(prune_message(line, known.cutoff) for line in newer), known.model)
    units, chain, running = known.units, list(known.chain), known.running.copy()
    for turn in turns:
        encoded = to_json(turn)
        units += text_units(encoded.decode()) + stored_units(turn)
        running.update(encoded + b"\n")
        chain.append(running.hexdigest()[:HASH_LENGTH])
    return LoweredHistory(
        known.model,
        known.cutoff,
        known.start,
        lines,
        (*known.turns, *turns),
        units,
        tuple(chain),
        running,
    )
