"""One append, with every outcome: stored, refused, or unknown because the answer was lost."""

from collections.abc import Callable, Iterator
from typing import TypeAlias

from tests.model.replicated.log import Commit, CommitId, Setting, State, Writer, fault_of, readable

Step = tuple[str, State]
Put: TypeAlias = Callable[[State, Writer], State]
"""Stores an actor's new place in the state."""


def append(
    s: State, me: Writer, commit: Commit, put: Put, *, then: str, name: str
) -> Iterator[Step]:
    """Append behind what the actor has seen. A lost answer leaves the actor where it is: it repeats."""
    if not s.has_leader:
        return
    if me.seen < len(s.log):
        yield f"{name}: the append is refused", put(s, me._replace(at=f"refused {me.at}"))
        return
    log = (*s.log, commit)
    stored = s._replace(log=log, fault=s.fault or fault_of(log))
    yield f"{name}: writes {commit.fact}", put(stored, _done(me, then, len(log)))
    if s.losses:
        silent = stored._replace(losses=s.losses - 1)
        yield f"{name}: writes {commit.fact}, and the answer is lost", silent
        lost = s._replace(losses=s.losses - 1)
        yield f"{name}: the append of {commit.fact} is lost", lost


def resolve_refusal(
    s: State, me: Writer, put: Put, setting: Setting, *, then: str, name: str
) -> Iterator[Step]:
    """Tell a lost race from one's own commit: look for the commit id, then decide again."""
    at_least = len(s.log) if setting.reads_to_the_head else 0
    for read, place in readable(s, me, at_least):
        if at_least and not s.has_leader:
            return
        if me.id in {commit.id for commit in s.log[:place]}:
            yield f"{name}: finds its own commit", put(read, _done(me, then, place))
            continue
        again = me._replace(at=me.at.removeprefix("refused "), seen=place)
        if not setting.keeps_ids:
            again = again._replace(id=_next_id(me))
        yield f"{name}: decides again at {place}", put(read, again)


def confirm(s: State, me: Writer, put: Put, *, name: str) -> Step | None:
    """Read up to the leader's head before a decision not to write; None if nothing is left to read."""
    if me.seen == len(s.log):
        return None
    return f"{name}: reads up to the leader's head", put(s, me._replace(seen=len(s.log)))


def _done(me: Writer, then: str, seen: int) -> Writer:
    return me._replace(at=then, seen=seen, id=_next_id(me))


def _next_id(me: Writer) -> CommitId:
    return me.id._replace(number=me.id.number + 1)
