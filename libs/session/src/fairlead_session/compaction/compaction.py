"""Compaction: when a request must become smaller, and what a summary replaces.

Bounded: one turn starts at most two compactions and recovers from at most one overflow.
"""

from dataclasses import dataclass
from typing import Final

from fairlead_schema.events import CompactionEnded, ContextPruned
from fairlead_schema.message import CompactionMessage, CreationTime, Message, SystemMessage
from fairlead_schema.provider.request import ModelRequest
from fairlead_session.compaction import estimate
from fairlead_session.compaction.pruning import prune, request_history
from fairlead_session.compaction.serialise import entry, join_entries
from fairlead_session.compaction.summary_input import fit_entries
from fairlead_session.compaction.summary_request import prompt, summary_request
from fairlead_session.frozen import replace
from fairlead_session.state.model_requests import PruneCutoff
from fairlead_session.state.session import Session
from fairlead_session.turn.history import lines
from fairlead_session.turn.lowered_history import LoweredHistory, lower_history
from fairlead_session.turn.lowering import lower
from fairlead_session.turn.request import ModelIdentity, build
from fairlead_session.turn.stream_calls import Offer

TRIES_MAX: Final = 2
# At most a quarter of a small window is kept as recent entries, whatever the settings allow.
_WINDOW_PARTS: Final = 4


@dataclass(frozen=True, slots=True)
class CompactionPolicy:
    """Settings of compaction and pruning. Their defaults are those of the configuration."""

    auto: bool
    buffer: int
    keep_tokens: int
    summary_tokens: int
    excerpt: int
    prune_turns: int
    prune_bytes: int
    calibrate: bool


@dataclass(frozen=True, slots=True)
class Window:
    """How many tokens a model takes and gives at most; 0 is unknown."""

    context: int = 0
    output: int = 0


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """A request for a summary, and the recent entries that stay as they were said."""

    request: ModelRequest
    recent: str
    through_seq: int


@dataclass(frozen=True, slots=True)
class NothingToCompact:
    """No compaction is possible, in one sentence."""

    why: str


@dataclass(frozen=True, slots=True)
class FittingRequest:
    """A request that may be sent, with its uncorrected estimate; perhaps after pruning."""

    request: ModelRequest
    estimate: int
    history: LoweredHistory
    pruned: ContextPruned | None = None


def fit(
    session: Session,
    identity: ModelIdentity,
    offer: Offer,
    policy: CompactionPolicy,
    window: Window,
    known: LoweredHistory | None = None,
) -> FittingRequest | CompactionPlan:
    """The request of the next turn; or, if it seems too large, the summary to ask for first.

    `known` is the history of an earlier request of this session: its messages are not lowered again.
    """
    whole = _build(session, identity, offer, known)
    if not is_oversized(session, whole, identity, policy, window):
        return whole
    pruned = prune(session, turns=policy.prune_turns, over_bytes=policy.prune_bytes)
    if pruned is not None:
        cutoff = PruneCutoff(pruned.through_seq, pruned.over_bytes)
        after = replace(session, requests=replace(session.requests, prune_cutoff=cutoff))
        smaller = replace(_build(after, identity, offer), pruned=pruned)
        if not is_oversized(session, smaller, identity, policy, window):
            return smaller
    if session.compaction.declined or session.compaction.tries >= TRIES_MAX:
        return whole
    outcome = plan(session, identity, policy, window)
    return outcome if isinstance(outcome, CompactionPlan) else whole


def is_oversized(
    session: Session,
    fitting: FittingRequest,
    identity: ModelIdentity,
    policy: CompactionPolicy,
    window: Window,
) -> bool:
    """Whether a request seems to leave too little room for its answer."""
    if not policy.auto or window.context <= 0:
        return False
    ratios = session.requests.token_ratios
    ratio = ratios.get(estimate.key(identity.model)) if policy.calibrate else None
    output = fitting.request.generation.max_tokens or window.output
    room = window.context - max(output, policy.buffer)
    return estimate.apply_ratio(fitting.estimate, ratio) > room


def plan(
    session: Session, identity: ModelIdentity, policy: CompactionPolicy, window: Window
) -> CompactionPlan | NothingToCompact:
    """Summarise everything but the newest whole entries that fit what may stay."""
    previous, entries = _last_compaction(session), entries_after(session, policy)
    if not entries and previous is None:
        return NothingToCompact("nothing was said yet")
    older = len(entries) - count_recent(entries, _recent_tokens_max(policy, window))
    head, recent = entries[:older], entries[older:]
    if previous is not None and previous.recent:
        head = (previous.recent, *head)
    if not head:
        return NothingToCompact("all of the conversation is recent")
    prior = previous.summary if previous else None
    output = min(window.output or policy.summary_tokens, policy.summary_tokens)
    if window.context > 0:
        head = fit_entries(head, _summary_room(session, identity, prior, window.context - output))
        if not head:
            return NothingToCompact("the model's context is too small for any summary")
    request = summary_request(session, identity, prompt(join_entries(head), prior), output)
    return CompactionPlan(request, join_entries(recent), session.seq)


def count_recent(entries: tuple[str, ...], tokens_max: int) -> int:
    """How many of the newest entries fit, each of them whole, up to the first that does not."""
    count, total = 0, 0
    for text in reversed(entries):
        total += estimate.tokens(text)
        if total > tokens_max:
            break
        count += 1
    return count


def entries_after(session: Session, policy: CompactionPolicy, seq: int = 0) -> tuple[str, ...]:
    """The messages of session history behind a seq, as text for a summary."""
    texts = (
        entry(line.message, excerpt=policy.excerpt) for line in lines(session) if line.seq > seq
    )
    return tuple(text for text in texts if text)


def estimate_history(
    session: Session, identity: ModelIdentity, ended: CompactionEnded | None = None
) -> int:
    """The tokens of session history in a request, now or after a compaction."""
    messages = request_history(session)
    if ended is not None:
        updates = tuple(message for message in messages if isinstance(message, SystemMessage))
        messages = (*updates, _compaction_message(ended))
    return estimate.estimate_value(lower(messages, identity.model))


def _build(
    session: Session, identity: ModelIdentity, offer: Offer, known: LoweredHistory | None = None
) -> FittingRequest:
    history = lower_history(session, identity.model, known)
    request = build(session, identity, offer, history)
    measured = (len(history.turns), history.units)
    return FittingRequest(request, estimate.estimate_request(request, measured), history)


def _last_compaction(session: Session) -> CompactionMessage | None:
    messages = (line.message for line in reversed(session.transcript.lines))
    return next((item for item in messages if isinstance(item, CompactionMessage)), None)


def _summary_room(session: Session, identity: ModelIdentity, prior: str | None, room: int) -> int:
    """The units of text that a request for a summary has for the conversation itself."""
    ratio = session.requests.token_ratios.get(estimate.key(identity.model))
    # A ratio below 1 is no reason to send more: the estimate of a text is rough.
    tokens_max = int(room / max(1.0, ratio or 1.0))
    return estimate.units_within(tokens_max) - estimate.text_units(prompt("", prior))


def _recent_tokens_max(policy: CompactionPolicy, window: Window) -> int:
    if window.context <= 0:
        return policy.keep_tokens
    return min(policy.keep_tokens, window.context // _WINDOW_PARTS)


def _compaction_message(ended: CompactionEnded) -> Message:
    return CompactionMessage(
        id=ended.message_id,
        reason=ended.reason,
        summary=ended.text,
        recent=ended.recent,
        time=CreationTime(created=0),
    )
