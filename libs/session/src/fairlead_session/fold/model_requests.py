"""Folds what earlier requests say about the next one: cached prefix, pruning, token ratios."""

from typing import Final

from fairlead_schema.events import (
    AttemptDispatched,
    CompactionEnded,
    ContextPruned,
    RevertCommitted,
    StepEnded,
)
from fairlead_schema.record import Recorded
from fairlead_session.compaction import estimate
from fairlead_session.fold import Reducers
from fairlead_session.fold.transcript import revert_seq
from fairlead_session.frozen import replace
from fairlead_session.state.model_requests import LastRequest, PruneCutoff, RequestState
from fairlead_session.state.session import Session


def _dispatch(session: Session, event: AttemptDispatched, _recorded: Recorded) -> RequestState:
    requests, last = session.requests, _last_request(session, event)
    return requests if last is requests.last else replace(requests, last=last)


def _compact(session: Session, _event: CompactionEnded, _recorded: Recorded) -> RequestState:
    return replace(session.requests, last=None, prune_cutoff=None)


def _prune(session: Session, event: ContextPruned, _recorded: Recorded) -> RequestState:
    cutoff = PruneCutoff(event.through_seq, event.over_bytes, event.hosted is True)
    return replace(session.requests, prune_cutoff=cutoff)


def _revert(session: Session, event: RevertCommitted, _recorded: Recorded) -> RequestState:
    if revert_seq(session, event) is None:
        return session.requests
    return replace(session.requests, last=None)


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


def _learn(session: Session, event: StepEnded, _recorded: Recorded) -> RequestState:
    """The provider's count corrects later estimates, and says how much its cache may hold."""
    requests, attempt = session.requests, session.turn.attempt
    reported = estimate.prompt_tokens(event.tokens)
    last = requests.last and replace(requests.last, tokens=reported)
    if attempt is None or attempt.estimate is None:
        return requests if last is None else replace(requests, last=last)
    key, ratios = estimate.key(attempt.model), requests.token_ratios
    ratio = estimate.update_ratio(ratios.get(key), plain=attempt.estimate, reported=reported)
    return replace(
        requests, last=last, token_ratios=ratios if ratio is None else {**ratios, key: ratio}
    )


REDUCERS: Final[Reducers[RequestState]] = {
    AttemptDispatched: _dispatch,
    StepEnded: _learn,
    CompactionEnded: _compact,
    ContextPruned: _prune,
    RevertCommitted: _revert,
}
