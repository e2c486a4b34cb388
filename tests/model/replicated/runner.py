"""Steps of a runner: take the wake, read, take turns, release, acknowledge, look again."""

from collections.abc import Iterator

from tests.model.replicated.append import Put, Step, append, confirm, resolve_refusal
from tests.model.replicated.log import (
    NOBODY,
    Commit,
    Setting,
    State,
    View,
    Wake,
    Writer,
    fold,
    readable,
    seen_by,
)


def steps(s: State, r: int, setting: Setting) -> Iterator[Step]:
    """What runner `r` may do next."""
    me, put = s.runners[r], _put(r)
    name = f"r{r}"
    match me.at:
        case "idle":
            if s.wake is not None and s.wake.holder == NOBODY:
                taken = s._replace(wake=s.wake._replace(holder=r))
                loading = me._replace(at="load", holds_wake=True, since=s.wake.position)
                yield f"{name}: takes the wake", put(taken, loading)
        case "load":
            yield from _load(s, r, me, setting)
        case "work":
            yield from _work(s, r, me, setting)
        case "wait":
            yield from _wait(s, r, me, setting)
        case "turn" | "release":
            yield from _drain(s, r, me, setting)
        case "refused work" | "refused turn" | "refused release" | "refused stop":
            then = {"work": "turn", "turn": "release"}.get(me.at.removeprefix("refused "), "ack")
            yield from resolve_refusal(s, me, put, setting, then=then, name=name)
        case "stop":
            yield from _stop(s, r, me)
        case "ack":
            yield f"{name}: acknowledges", put(_acknowledge(s, r), me._replace(at="look"))
        case _:
            yield from _look(s, r, me, setting)


def _load(s: State, r: int, me: Writer, setting: Setting) -> Iterator[Step]:
    """Read up to the position of the wake, or fold its commit: both may be old by now."""
    at_least = me.since if setting.wakes_carry_positions else 0
    if setting.wakes_carry_commits and me.since - 1 <= me.seen <= me.since:
        yield (
            f"r{r}: folds the commit of its wake",
            _put(r)(s, me._replace(at="work", seen=me.since)),
        )
    for read, place in readable(s, me, at_least):
        yield f"r{r}: reads {place}", _put(r)(read, me._replace(at="work", seen=place))


def _work(s: State, r: int, me: Writer, setting: Setting) -> Iterator[Step]:
    """Claim the session with its first turn, or find that there is nothing to do."""
    put, view = _put(r), seen_by(s, me)
    if view.owner not in {NOBODY, r} and not s.expiries:
        back = s._replace(wake=s.wake._replace(holder=NOBODY)) if _holds(s, r) and s.wake else s
        yield f"r{r}: leaves it to r{view.owner}", put(back, _end(me))
    elif view.interrupted:
        yield f"r{r}: stops", put(s, me._replace(at="stop"))
    elif view.pending or view.owner != NOBODY:
        commit = Commit("turn", r, me.id, view.pending)
        yield from append(s, me, commit, put, then="turn", name=f"r{r}")
    else:
        yield from _rest(s, r, me, setting)


def _rest(s: State, r: int, me: Writer, setting: Setting) -> Iterator[Step]:
    step = confirm(s, me, _put(r), name=f"r{r}") if setting.confirms_rest else None
    if step is None:
        yield f"r{r}: finds rest", _put(r)(s, me._replace(at="ack"))
    elif s.has_leader:
        yield step


def _wait(s: State, r: int, me: Writer, setting: Setting) -> Iterator[Step]:
    """Wait for the settlement of the call. It comes with a nudge or by a look at the log."""
    put, view = _put(r), seen_by(s, me)
    if view.owner != r or view.interrupted or view.call == "settled":
        yield f"r{r}: has waited", put(s, me._replace(at="turn"))
        return
    if setting.nudges_carry_commits and me.seen < s.nudge:
        skipped = tuple(range(me.seen, s.nudge - 1))
        if not (skipped and setting.folds_only_the_next):
            folded = me._replace(seen=s.nudge, missed=(*me.missed, *skipped))
            yield f"r{r}: folds the commit of its nudge", put(s, folded)
    for read, place in readable(s, me, s.nudge):
        if place > me.seen:
            yield f"r{r}: reads {place}", put(read, me._replace(seen=place))


def _drain(s: State, r: int, me: Writer, setting: Setting) -> Iterator[Step]:
    """Write the answer, then the release. An owner that was replaced stops without a write."""
    put, view = _put(r), seen_by(s, me)
    if view.owner != r:
        yield f"r{r}: is fenced", put(s, _end(me))
        return
    if not s.has_leader and not setting.patient and me.at == "turn":
        lost = s._replace(fault=s.fault or "a turn was lost to an election")
        yield f"r{r}: gives its turn up", put(lost, me._replace(at="load"))
    if view.interrupted:
        yield f"r{r}: stops", put(s, me._replace(at="stop"))
    elif me.at == "turn":
        yield from append(s, me, Commit("answer", r, me.id), put, then="release", name=f"r{r}")
    elif view.pending:
        yield f"r{r}: goes on", put(s, me._replace(at="work"))
    else:
        yield from append(s, me, Commit("release", r, me.id), put, then="ack", name=f"r{r}")


def _stop(s: State, r: int, me: Writer) -> Iterator[Step]:
    if not seen_by(s, me).interrupted:
        yield f"r{r}: finds the interrupt honoured", _put(r)(s, me._replace(at="work"))
        return
    yield from append(s, me, Commit("stop", r, me.id), _put(r), then="ack", name=f"r{r}")


def _look(s: State, r: int, me: Writer, setting: Setting) -> Iterator[Step]:
    """Read once more after the acknowledgement, and wake the session if work came meanwhile."""
    if setting.confirms_rest:
        if s.has_leader:
            yield f"r{r}: looks again", _put(r)(_wake_again(s, len(s.log)), _end(me, len(s.log)))
        return
    for read, place in readable(s, me):
        yield f"r{r}: looks again at {place}", _put(r)(_wake_again(read, place), _end(me, place))


def _wake_again(s: State, place: int) -> State:
    view: View = fold(s.log[:place])
    if view.is_moving and view.owner == NOBODY and s.wake is None:
        return s._replace(wake=Wake(place))
    return s


def _acknowledge(s: State, r: int) -> State:
    """A stale acknowledgement removes the message of the new holder too."""
    return s._replace(wake=None) if s.runners[r].holds_wake else s


def _holds(s: State, r: int) -> bool:
    return s.wake is not None and s.wake.holder == r


def _end(me: Writer, seen: int | None = None) -> Writer:
    return me._replace(at="idle", holds_wake=False, since=0, seen=me.seen if seen is None else seen)


def _put(r: int) -> Put:
    def put(s: State, me: Writer) -> State:
        return s._replace(runners=(*s.runners[:r], me, *s.runners[r + 1 :]))

    return put
