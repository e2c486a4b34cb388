"""The history of a request, extended from turn to turn instead of built again.

Messages never change. A history whose messages begin with those of an earlier history keeps its
turns, its size and its hashes, so a turn costs the same in a short and in a long session.
"""

import hashlib
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from pydantic_core import to_json

from fairlead_schema.catalog import ModelRef
from fairlead_schema.message import Message
from fairlead_schema.provider.request import Turn
from fairlead_session.compaction.estimate import text_units
from fairlead_session.compaction.pruning import prune_message
from fairlead_session.state.model_requests import PruneCutoff
from fairlead_session.state.session import Session
from fairlead_session.state.transcript import TranscriptLine
from fairlead_session.turn.history import lines
from fairlead_session.turn.lowering import lower

HASH_LENGTH: Final = 12


@dataclass(frozen=True, slots=True)
class LoweredHistory:
    """The turns of all messages for one model, the size of their JSON, and their hashes.

    `chain` has the hash of the first 0, 1, 2… turns.
    """

    model: ModelRef
    cutoff: PruneCutoff | None
    messages: tuple[Message, ...] = ()
    turns: tuple[Turn, ...] = ()
    units: int = 0
    chain: tuple[str, ...] = ("",)
    running: "hashlib._Hash" = field(default_factory=sha256, compare=False)

    def begins(self, newer: tuple[TranscriptLine, ...]) -> bool:
        """Whether newer lines begin with the messages of this history."""
        return len(self.messages) <= len(newer) and all(
            message is line.message for message, line in zip(self.messages, newer, strict=False)
        )


def lower_history(
    session: Session, model: ModelRef, known: LoweredHistory | None = None
) -> LoweredHistory:
    """The history of the session's next request; `known` saves the work for its messages."""
    transcript, cutoff = lines(session), session.requests.prune_cutoff
    if known is None or (known.model, known.cutoff) != (model, cutoff):
        return _extend(LoweredHistory(model, cutoff), transcript)
    if not known.begins(transcript):
        return _extend(LoweredHistory(model, cutoff), transcript)
    return _extend(known, transcript[len(known.messages) :])


def _extend(known: LoweredHistory, newer: tuple[TranscriptLine, ...]) -> LoweredHistory:
    turns = lower(tuple(prune_message(line, known.cutoff) for line in newer), known.model)
    units, chain, running = known.units, list(known.chain), known.running.copy()
    for turn in turns:
        encoded = to_json(turn)
        units += text_units(encoded.decode())
        running.update(encoded + b"\n")
        chain.append(running.hexdigest()[:HASH_LENGTH])
    return LoweredHistory(
        known.model,
        known.cutoff,
        (*known.messages, *(line.message for line in newer)),
        (*known.turns, *turns),
        units,
        tuple(chain),
        running,
    )
