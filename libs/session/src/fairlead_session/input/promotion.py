"""Promotion: pending input becomes session history, in order."""

from itertools import accumulate

from fairlead_schema.events import PromptPromoted
from fairlead_schema.ids import MessageId
from fairlead_session.state.inbox import PendingInput
from fairlead_session.state.session import Session

STEERS_MAX = 100
# A boundary is one commit, so it promotes no more input than one commit can hold.
PROMOTED_BYTES_MAX = 4 * 1024 * 1024


def eligible_inputs(
    session: Session, *, steers_max: int = STEERS_MAX, opening: MessageId | None = None
) -> tuple[PendingInput, ...]:
    """The inputs that the next boundary promotes, in their order.

    Steers come first. Without a steer and without an owed turn the oldest queued input opens an
    activity. An input that is `opening` an activity already stays before newer steers.
    """
    steers = tuple(item for item in session.inbox.pending if item.delivery == "steer")[:steers_max]
    queued = next((item for item in session.inbox.pending if item.delivery == "queue"), None)
    if queued is not None and queued.message_id == opening and not session.execution.owed:
        return _fit_commit((queued, *steers))
    if steers or session.execution.owed:
        return _fit_commit(steers)
    return () if queued is None else (queued,)


def promote(inputs: tuple[PendingInput, ...]) -> tuple[PromptPromoted, ...]:
    """The events that show these inputs to the model."""
    return tuple(
        PromptPromoted(message_id=item.message_id, prompt=item.prompt, created=item.created)
        for item in inputs
    )


def _fit_commit(inputs: tuple[PendingInput, ...]) -> tuple[PendingInput, ...]:
    """As many inputs as one commit can hold, at least one."""
    sizes = accumulate(len(item.prompt.model_dump_json().encode()) for item in inputs)
    count = sum(1 for size in sizes if size <= PROMOTED_BYTES_MAX)
    return inputs[: max(count, 1)]
