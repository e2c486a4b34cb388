"""Projectors that write several shards in one transaction: every interleaving of a small setting.

A shard may have two writers at any time: the locks only divide the work. The checkpoints fence them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from tests.model.search import Search, search

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Setting:
    """How many take part, what may go wrong, and which rules are in force."""

    shards: int = 2
    entries: int = 2
    writers: int = 2
    # Connections that break during a transaction, errors of the log in one shard, rebuilds.
    breaks: int = 0
    errors: int = 0
    rebuilds: int = 0
    # Every checkpoint of a transaction is compared, not just the first.
    compares_all: bool = True
    # A fenced shard takes no rows into a transaction.
    leaves_out_fenced: bool = True
    # A shard whose entries were taken and not written is held anew.
    drops_failed: bool = True
    # A writer without new entries looks whether its checkpoint was moved.
    looks_when_quiet: bool = True


class Hand(NamedTuple):
    """What a writer knows of a shard: its mark, how far it has read, and from where it will write."""

    mark: int
    read: int
    written_from: int
    taken: int
    """The end of what the running transaction has; below the mark if it has nothing."""


class State(NamedTuple):
    """The tables, and what each writer has in its hands."""

    checkpoints: tuple[int, ...]
    rows: tuple[tuple[int, ...], ...]
    hands: tuple[tuple[Hand | None, ...], ...]
    breaks: int
    errors: int
    rebuilds: int

    @property
    def fault(self) -> str:
        """What is wrong with the rows: each has exactly the entries up to its checkpoint, in order."""
        for rows, checkpoint in zip(self.rows, self.checkpoints, strict=True):
            if len(set(rows)) < len(rows):
                return "an entry was applied twice"
            if rows != tuple(range(1, checkpoint + 1)):
                return "an entry was skipped"
        return ""


Step = tuple[str, State]


def initial_state(setting: Setting) -> State:
    """Empty tables, and nobody holds a shard."""
    nothing: tuple[Hand | None, ...] = (None,) * setting.shards
    return State(
        checkpoints=(0,) * setting.shards,
        rows=((),) * setting.shards,
        hands=(nothing,) * setting.writers,
        breaks=setting.breaks,
        errors=setting.errors,
        rebuilds=setting.rebuilds,
    )


def explore(setting: Setting) -> tuple[Search[State], dict[str, tuple[str, ...]], bool]:
    """All states, a shortest way to each fault, and whether the end can be reached from everywhere."""
    found = search(initial_state(setting), lambda s: steps(s, setting))
    faults: dict[str, tuple[str, ...]] = {}
    for index in found.find(lambda s: bool(s.fault)):
        faults.setdefault(found.states[index].fault, found.trace(index))
    finished = (setting.entries,) * setting.shards
    return found, faults, not found.find_stranded(lambda s: s.checkpoints == finished)


def steps(s: State, setting: Setting) -> Iterator[Step]:
    """Everything that may happen next. A fault ends the exploration of its way."""
    if s.fault:
        return
    for w in range(setting.writers):
        yield from _prepare(s, w, setting)
        if any(hand is not None and hand.taken > hand.mark for hand in s.hands[w]):
            yield from _write(s, w, setting)
    if s.rebuilds:
        nothing = s._replace(
            checkpoints=(0,) * setting.shards, rows=((),) * setting.shards, rebuilds=s.rebuilds - 1
        )
        yield "somebody rebuilds", nothing


def _prepare(s: State, w: int, setting: Setting) -> Iterator[Step]:
    """Hold a shard from its checkpoint, read its next entry, take what all shards have read."""
    hands = s.hands[w]
    for shard, hand in enumerate(hands):
        if hand is None:
            at = s.checkpoints[shard]
            yield f"{w} holds {shard} at {at}", _with_hand(s, w, shard, Hand(at, at, at, at))
        elif hand.read < setting.entries:
            more = hand._replace(read=hand.read + 1)
            yield f"{w} reads {more.read} of {shard}", _with_hand(s, w, shard, more)
        elif setting.looks_when_quiet and hand.mark == hand.read != s.checkpoints[shard]:
            yield f"{w} finds {shard} moved", _with_hand(s, w, shard, None)
    is_writing = any(hand is not None and hand.taken > hand.mark for hand in hands)
    if not is_writing and any(hand is not None and hand.read > hand.mark for hand in hands):
        taken = tuple(hand and hand._replace(taken=hand.read) for hand in hands)
        yield f"{w} begins a transaction", _with_hands(s, w, taken)


def _write(s: State, w: int, setting: Setting) -> Iterator[Step]:
    """One transaction: committed, committed without an answer, rolled back, or without one shard."""
    members = [
        shard
        for shard, hand in enumerate(s.hands[w])
        if hand is not None and hand.taken > hand.mark
    ]
    committed = _commit(s, w, members, setting)
    yield f"{w} commits {members}", committed
    if s.breaks:
        lost: tuple[Hand | None, ...] = (None,) * setting.shards
        silent = _with_hands(committed, w, lost)
        yield f"{w} commits {members} and its connection breaks", silent._replace(breaks=0)
        yield (
            f"{w} is rolled back: its connection breaks",
            _with_hands(s, w, lost)._replace(breaks=0),
        )
    if s.errors:
        for shard in members:
            others = _commit(s, w, [member for member in members if member != shard], setting)
            failed = _fail(others, w, shard, setting)
            yield f"{w} commits without {shard}, which fails", failed._replace(errors=0)


def _commit(s: State, w: int, members: list[int], setting: Setting) -> State:
    compared = members if setting.compares_all else members[:1]
    fenced = {shard for shard in compared if s.checkpoints[shard] != _hand(s, w, shard).mark}
    for shard in members:
        hand = _hand(s, w, shard)
        if shard not in fenced:
            moved = hand._replace(mark=hand.taken, written_from=hand.taken)
            s = _with_hand(_apply(s, shard, hand), w, shard, moved)
        else:
            if not setting.leaves_out_fenced:
                s = _apply(s, shard, hand)
            s = _with_hand(s, w, shard, None)
    return s


def _apply(s: State, shard: int, hand: Hand) -> State:
    rows = (*s.rows[shard], *range(hand.written_from + 1, hand.taken + 1))
    return s._replace(
        rows=_put(s.rows, shard, rows), checkpoints=_put(s.checkpoints, shard, hand.taken)
    )


def _fail(s: State, w: int, shard: int, setting: Setting) -> State:
    if setting.drops_failed:
        return _with_hand(s, w, shard, None)
    # It goes on with what it reads next, although what it had taken is gone.
    hand = _hand(s, w, shard)
    return _with_hand(s, w, shard, hand._replace(written_from=hand.taken, taken=hand.mark))


def _hand(s: State, w: int, shard: int) -> Hand:
    hand = s.hands[w][shard]
    assert hand is not None, "a member of a transaction is held"
    return hand


def _with_hand(s: State, w: int, shard: int, hand: Hand | None) -> State:
    return _with_hands(s, w, _put(s.hands[w], shard, hand))


def _with_hands(s: State, w: int, hands: tuple[Hand | None, ...]) -> State:
    return s._replace(hands=_put(s.hands, w, hands))


def _put(values: tuple[T, ...], index: int, value: T) -> tuple[T, ...]:
    return (*values[:index], value, *values[index + 1 :])
