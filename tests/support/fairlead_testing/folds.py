"""A fold for tests that need none of the session's rules."""

from fairlead_schema.record import Recorded
from fairlead_schema.subjects import Address

Seqs = tuple[int, ...]


class SeqFold:
    """Folds a log into the sequence numbers of its events."""

    def initial(self, _at: Address) -> Seqs:
        return ()

    def evolve(self, state: Seqs, recorded: Recorded) -> Seqs:
        return (*state, recorded.seq)

    def freeze(self, state: Seqs) -> bytes:
        return ",".join(map(str, state)).encode()

    def thaw(self, raw: bytes) -> Seqs | None:
        return tuple(map(int, raw.split(b","))) if raw != b"foreign" else None
