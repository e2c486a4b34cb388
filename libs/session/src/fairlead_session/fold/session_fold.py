"""How a session is read from its log, in one value: for whoever keeps folded sessions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from fairlead_schema.record import Recorded
from fairlead_schema.subjects import Address
from fairlead_session.fold.evolve import evolve
from fairlead_session.fold.snapshot import freeze, thaw
from fairlead_session.state import Session


@dataclass(frozen=True, slots=True)
class SessionFold:
    """The fold, and the snapshots that spare some of it."""

    initial: Callable[[Address], Session]
    evolve: Callable[[Session, Recorded], Session]
    freeze: Callable[[Session], bytes]
    thaw: Callable[[bytes], Session | None]


SESSION_FOLD: Final = SessionFold(lambda at: Session(id=at.session_id), evolve, freeze, thaw)
