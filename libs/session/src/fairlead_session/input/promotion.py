"""Promotion: pending input becomes session history, in order, up to a captured cutoff."""

from itertools import accumulate

from fairlead_schema.events import PromptPromoted
from fairlead_schema.ids import MessageId
from fairlead_session.state.inbox import PendingInput
from fairlead_session.state.session import Session

STEERS_MAX = 100
# A boundary is one commit, so it takes no more than a commit can hold.
PROMOTED_BYTES_MAX = 4 * 1024 * 1024


def eligible_inputs(
    session: Session, *, steers_max: int = STEERS_MAX, opening: MessageId | None = None
) -> tuple[PendingInput, ...]:
    """The inputs that the next boundary promotes, in their order.

    Steers come first. With no turn owed and no steer, the oldest queued input opens an activity;
    one that was already `opening` it goes before steers that came meanwhile.
    """
    steers = tuple(item for item in session.inbox.pending if item.delivery == "steer")[:steers_max]
    queued = next((item for item in session.inbox.pending if item.delivery == "queue"), None)
    if queued is not None and queued.message_id == opening and not session.execution.owed:
        return _fitting((queued, *steers))
    if steers or session.execution.owed:
        return _fitting(steers)
    return () if queued is None else (queued,)


def promote(inputs: tuple[PendingInput, ...]) -> tuple[PromptPromoted, ...]:
    """The events that make these inputs visible."""
    return tuple(
        PromptPromoted(message_id=item.message_id, prompt=item.prompt, created=item.created)
        for item in inputs
    )


def _fitting(inputs: tuple[PendingInput, ...]) -> tuple[PendingInput, ...]:
    """As many as fit one commit, and always one."""
    sizes = accumulate(len(item.prompt.model_dump_json().encode()) for item in inputs)
    count = sum(1 for size in sizes if size <= PROMOTED_BYTES_MAX)
    return inputs[: max(count, 1)]
