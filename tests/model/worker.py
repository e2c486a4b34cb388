"""Steps of a tool worker: ask, start a call by a commit, run it, settle it once, wake its session."""

from collections.abc import Iterator

from tests.model.state import (
    AVAILABLE,
    GONE,
    NO_TOKEN,
    NOBODY,
    Setting,
    State,
    Worker,
    after_commit,
    has_open_call,
    waits_for_a_person,
    with_wake,
)

Step = tuple[str, State]


def steps(s: State, w: int, setting: Setting) -> Iterator[Step]:
    """What worker `w` may do next."""
    me = s.workers[w]
    if me.at == "idle":
        if s.request == AVAILABLE:
            yield f"w{w} takes the request", _put(s._replace(request=w), w, Worker("look"))
        if s.second == AVAILABLE:
            taken = s._replace(second=w)
            yield f"w{w} takes the second request", _put(taken, w, Worker("look", second=True))
        return
    if s.crashes and "worker" in setting.mortal:
        yield f"w{w} crashes at {me.at}", _crash(s, w)
    match me.at:
        case "look":
            yield from _look(s, w, setting)
        case "start":
            yield from _start(s, w, setting)
        case "run" | "fail":
            yield f"w{w} settles the call", _settle(s, w, setting)
        case "wake":
            yield _wake(s, w, setting)
        case _:
            yield (
                f"w{w} acknowledges the request",
                _put(_return_request(s, w, NO_TOKEN), w, Worker()),
            )


def _look(s: State, w: int, setting: Setting) -> Iterator[Step]:
    """A request for a settled call only wakes. A `once` call that was started is not started again."""
    if not has_open_call(s):
        yield f"w{w} finds the call settled", _at(s, w, "wake")
    elif s.ask == "closed":
        yield f"w{w} finds the call stopped", _at(s, w, "wake")
    elif waits_for_a_person(s):
        yield f"w{w} leaves it to the person", _at(s, w, "ack")
    elif s.call == "called" or not setting.once:
        yield f"w{w} reads the log", _at(s, w, "start", fresh=True)
    else:
        if s.starter != GONE:
            back = _return_request(s, w, AVAILABLE)
            yield f"w{w} leaves it to w{s.starter}", _put(back, w, Worker())
        yield f"w{w} finds its starter gone", _at(s, w, "fail")


def _start(s: State, w: int, setting: Setting) -> Iterator[Step]:
    """A pure call may run first; its start and its settlement are then one commit."""
    if not s.workers[w].fresh:
        yield f"w{w} finds that the log moved", _at(s, w, "look")
        return
    if setting.asks and not s.ask:
        asking = after_commit(s._replace(ask="pending"), setting)
        yield f"w{w} asks a person", _at(asking, w, "ack")
        return
    started = s._replace(call="started", starter=w, starts=s.starts + 1)
    yield f"w{w} starts the call", _at(after_commit(started, setting), w, "run")
    if not setting.once:
        yield f"w{w} starts and settles the call", _settle(started, w, setting)


def _settle(s: State, w: int, setting: Setting) -> State:
    """Settle the call, even after a commit of somebody else, unless that commit settled it."""
    if not has_open_call(s):
        return _at(s, w, "wake")
    requests_work = not (s.interrupted and setting.settlement_respects_interrupt)
    settled = s._replace(
        call="settled",
        settles=s.settles + 1,
        starter=NOBODY,
        work_requested=s.work_requested or requests_work,
        work_expected=s.work_expected or not s.interrupted,
    )
    return _at(after_commit(settled, setting), w, "wake")


def _wake(s: State, w: int, setting: Setting) -> Step:
    """Wake once: if the server refuses, the holder of the other wake looks again before it rests."""
    if not setting.settlement_wakes:
        return f"w{w} does not wake", _at(s, w, "ack")
    if s.wake != NO_TOKEN:
        return f"w{w} is refused", _at(s, w, "ack")
    return f"w{w} wakes the session", _at(with_wake(s) or s, w, "ack")


def _crash(s: State, w: int) -> State:
    """The request of a dead worker stays in the queue until its deadline passes."""
    starter = GONE if s.starter == w else s.starter
    return _put(s._replace(starter=starter, crashes=s.crashes - 1), w, Worker())


def _return_request(s: State, w: int, token: int) -> State:
    """Put the worker's request back or remove it. A request that was lost stays lost."""
    if s.workers[w].second:
        return s._replace(second=token)
    return s._replace(request=token) if s.request == w or token == NO_TOKEN else s


def _at(s: State, w: int, at: str, *, fresh: bool = False) -> State:
    return _put(s, w, s.workers[w]._replace(at=at, fresh=fresh))


def _put(s: State, w: int, me: Worker) -> State:
    return s._replace(workers=(*s.workers[:w], me, *s.workers[w + 1 :]))
