"""Compaction: when a request must become smaller, what is summarised, and what becomes of it.

Bounded: a turn starts at most two, an overflow is recovered from once, and a summary that does not
make the request smaller is thrown away.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias

from fairlead_schema.events import CompactionEnded, CompactionStarted, ContextPruned
from fairlead_schema.message import CompactionMessage, CreationTime, Message, SystemMessage
from fairlead_schema.provider.request import Generation, ModelRequest, TextPart, UserTurn
from fairlead_session.compaction import estimate
from fairlead_session.compaction.pruning import prune, request_history
from fairlead_session.compaction.serialise import BETWEEN, entry, join_entries
from fairlead_session.compaction.summary_prompt import prompt
from fairlead_session.frozen import replace
from fairlead_session.state.requests import PruneCutoff
from fairlead_session.state.session import Session
from fairlead_session.turn import request
from fairlead_session.turn.history import lines
from fairlead_session.turn.lowering import lower
from fairlead_session.turn.request import ModelIdentity
from fairlead_session.turn.stream_calls import Offer

TRIES_MAX: Final = 2
# Of a small window no more than this part is kept as it was said, whatever the settings allow.
_KEEP_PART: Final = 4


@dataclass(frozen=True, slots=True)
class Policy:
    """Settings of compaction and pruning."""

    auto: bool = True
    buffer: int = 20_000
    keep_tokens: int = 8_000
    summary_tokens: int = 4_096
    excerpt: int = 2_000
    prune_turns: int = 20
    prune_bytes: int = 4_096
    calibrate: bool = True


@dataclass(frozen=True, slots=True)
class Window:
    """What a model takes and gives at most, in tokens; 0 is unknown."""

    context: int = 0
    output: int = 0


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """A summary to ask for: of what, and what stays as it was said."""

    asked: ModelRequest
    recent: str
    through_seq: int


@dataclass(frozen=True, slots=True)
class NothingToCompact:
    """No compaction is possible, in one sentence."""

    why: str


@dataclass(frozen=True, slots=True)
class CompactionReady:
    """A request that may leave, with its plain estimate; perhaps after pruning."""

    asked: ModelRequest
    estimate: int
    pruned: ContextPruned | None = None


Fitting: TypeAlias = CompactionReady | CompactionPlan


def fit(
    session: Session, identity: ModelIdentity, offer: Offer, policy: Policy, window: Window
) -> Fitting:
    """The request of the next turn; or, if it seems too large, what to summarise first."""
    whole = _ready(session, identity, offer)
    if not oversized(session, whole, identity, policy, window):
        return whole
    cut = prune(session, turns=policy.prune_turns, over_bytes=policy.prune_bytes)
    if cut is not None:
        cutoff = PruneCutoff(cut.through_seq, cut.over_bytes)
        pruned = replace(session, requests=replace(session.requests, prune_cutoff=cutoff))
        smaller = replace(_ready(pruned, identity, offer), pruned=cut)
        if not oversized(session, smaller, identity, policy, window):
            return smaller
    if session.compaction.declined or session.compaction.tries >= TRIES_MAX:
        return whole
    made = plan(session, identity, policy, window)
    return made if isinstance(made, CompactionPlan) else whole


def oversized(
    session: Session,
    ready: CompactionReady,
    identity: ModelIdentity,
    policy: Policy,
    window: Window,
) -> bool:
    """Whether a request seems to leave too little room for its answer."""
    if not policy.auto or window.context <= 0:
        return False
    ratio = (
        session.requests.token_ratios.get(estimate.key(identity.model))
        if policy.calibrate
        else None
    )
    output = ready.asked.generation.max_tokens or window.output
    room = window.context - max(output, policy.buffer)
    return estimate.apply_ratio(ready.estimate, ratio) > room


def plan(
    session: Session, identity: ModelIdentity, policy: Policy, window: Window
) -> CompactionPlan | NothingToCompact:
    """What a summary would be asked of: everything but the newest whole entries that may stay."""
    prior, entries = _prior(session), _entries(session, policy)
    if not entries and prior is None:
        return NothingToCompact("nothing was said yet")
    kept = keep(entries, _kept_tokens(policy, window))
    head, recent = entries[: len(entries) - kept], entries[len(entries) - kept :]
    if prior is not None and prior.recent:
        head = (prior.recent, *head)
    if not head:
        return NothingToCompact("all of the conversation is recent")
    told = prompt(join_entries(head), prior.summary if prior else None)
    output = min(window.output or policy.summary_tokens, policy.summary_tokens)
    if window.context > 0 and estimate.tokens(told) > window.context - output:
        return NothingToCompact("what has to be summarised does not fit the model's context either")
    asked = ModelRequest(
        model=identity.api_model,
        turns=(UserTurn((TextPart(told),)),),
        generation=Generation(max_tokens=output),
        headers={**identity.headers, **request.correlation(session)},
        options=dict(identity.options),
    )
    return CompactionPlan(asked, join_entries(recent), session.seq)


def keep(entries: tuple[str, ...], tokens_max: int) -> int:
    """How many of the newest entries fit, each of them whole, up to the first that does not."""
    count, total = 0, 0
    for one in reversed(entries):
        total += estimate.tokens(one)
        if total > tokens_max:
            break
        count += 1
    return count


def end(
    session: Session,
    started: CompactionStarted,
    made: CompactionPlan,
    summary: str,
    identity: ModelIdentity,
    policy: Policy,
) -> CompactionEnded | NothingToCompact:
    """The end of a compaction, if its summary says something and makes the request smaller."""
    if not summary.strip():
        return NothingToCompact("the model gave no summary")
    late = _entries(session, policy, after=made.through_seq)
    recent = BETWEEN.join(part for part in (made.recent, *late) if part)
    ended = CompactionEnded(
        message_id=started.message_id, reason=started.reason, text=summary, recent=recent
    )
    if weight(session, identity, ended) >= weight(session, identity):
        return NothingToCompact("the summary is no smaller than what it would replace")
    return ended


def weight(session: Session, identity: ModelIdentity, ended: CompactionEnded | None = None) -> int:
    """The estimate of the messages that a request would hold, now or after a compaction."""
    messages = request_history(session)
    if ended is not None:
        updates = tuple(message for message in messages if isinstance(message, SystemMessage))
        messages = (*updates, _checkpoint(ended))
    return estimate.estimate_value(lower(messages, identity.model))


def recoverable(session: Session, window: Window) -> bool:
    """Whether an overflow that came before any output may be answered by a compaction."""
    state = session.compaction
    return window.context > 0 and not state.overflowed and state.tries < TRIES_MAX


def overflow_message(session: Session, said: str) -> str:
    """What the step fails with: a second overflow has words of its own."""
    if not session.compaction.overflowed:
        return said
    return f"The conversation does not fit the model's context, even after a compaction: {said}"


def _ready(session: Session, identity: ModelIdentity, offer: Offer) -> CompactionReady:
    asked = request.build(session, identity, offer)
    return CompactionReady(asked, estimate.estimate_request(asked))


def _prior(session: Session) -> CompactionMessage | None:
    found = (line.message for line in reversed(session.transcript.lines))
    return next((one for one in found if isinstance(one, CompactionMessage)), None)


def _entries(session: Session, policy: Policy, *, after: int = 0) -> tuple[str, ...]:
    told = (
        entry(line.message, excerpt=policy.excerpt) for line in lines(session) if line.seq > after
    )
    return tuple(one for one in told if one)


def _kept_tokens(policy: Policy, window: Window) -> int:
    if window.context <= 0:
        return policy.keep_tokens
    return min(policy.keep_tokens, window.context // _KEEP_PART)


def _checkpoint(ended: CompactionEnded) -> Message:
    return CompactionMessage(
        id=ended.message_id,
        reason=ended.reason,
        summary=ended.text,
        recent=ended.recent,
        time=CreationTime(created=0),
    )
