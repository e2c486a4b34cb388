"""Events to write."""

from fairlead_schema.events import SyntheticAdded
from fairlead_schema.record import Draft
from fairlead_service import ids


def drafts(count: int = 1, text: str = "said") -> tuple[Draft, ...]:
    """Some events to write."""
    return tuple(
        Draft(ids.event_id(), 1, SyntheticAdded(message_id=ids.message_id(), text=text))
        for _ in range(count)
    )
