"""Folds what earlier requests say about the next one: cached prefix, pruning, token ratios."""

from typing import TypeAlias, assert_never

from fairlead_schema.events import (
    AttemptDispatched,
    CompactionEnded,
    ContextPruned,
    RevertCommitted,
    StepEnded,
)
from fairlead_schema.record import Recorded
from fairlead_session.compaction import estimate
from fairlead_session.fold.transcript import revert_seq
from fairlead_session.frozen import replace
from fairlead_session.state.requests import LastRequest, PruneCutoff, RequestState
from fairlead_session.state.session import Session

RequestEvent: TypeAlias = (
    AttemptDispatched | StepEnded | CompactionEnded | ContextPruned | RevertCommitted
)


def evolve(session: Session, event: RequestEvent, _recorded: Recorded) -> RequestState:
    """Apply one event that changes what the next request may rely on."""
    requests = session.requests
    match event:
        case AttemptDispatched():
            return replace(requests, last=_last_request(session, event))
        case StepEnded():
            return _learn(session, event)
        case CompactionEnded():
            return replace(requests, last=None, prune_cutoff=None)
        case ContextPruned(through_seq=through_seq, over_bytes=over_bytes):
            return replace(requests, prune_cutoff=PruneCutoff(through_seq, over_bytes))
        case RevertCommitted():
            return requests if revert_seq(session, event) is None else replace(requests, last=None)
        case _:
            assert_never(event)


def _last_request(session: Session, event: AttemptDispatched) -> LastRequest | None:
    if event.request_hash is None or session.epoch is None:
        return None
    return LastRequest(
        event.request_hash,
        event.agent,
        event.model,
        session.epoch.seq,
        pruned=session.requests.prune_cutoff is not None,
    )


def _learn(session: Session, event: StepEnded) -> RequestState:
    """The provider's count corrects later estimates, and says how much its cache may hold."""
    requests, attempt = session.requests, session.turn.attempt
    reported = estimate.prompt_tokens(event.tokens)
    last = requests.last and replace(requests.last, tokens=reported)
    if attempt is None or attempt.estimate is None:
        return replace(requests, last=last)
    key, ratios = estimate.key(attempt.model), requests.token_ratios
    ratio = estimate.update_ratio(ratios.get(key), plain=attempt.estimate, reported=reported)
    return replace(
        requests, last=last, token_ratios=ratios if ratio is None else {**ratios, key: ratio}
    )
