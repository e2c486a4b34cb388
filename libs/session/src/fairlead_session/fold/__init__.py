"""The fold: events become the state of a session. It imports no decider and never rejects an event.

Each part of the state has a module with a table of reducers, one for each event that changes the part.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

from fairlead_schema.record import Recorded
from fairlead_session.state.session import Session

Part = TypeVar("Part")
Reducer: TypeAlias = Callable[[Session, Any, Recorded], Part]
"""Gives one part of a session after an event, from the session before it and the event."""
Reducers: TypeAlias = Mapping[type, Reducer[Part]]
