"""Steps of a runner: take a wake, drain by the log alone, release, acknowledge, look again."""

from collections.abc import Iterator

from tests.model.state import (
    AVAILABLE,
    GONE,
    NEVER,
    NO_TOKEN,
    NOBODY,
    Runner,
    Setting,
    State,
    after_commit,
    has_open_call,
    is_moving,
    waits_for_a_person,
    with_wake,
)

Step = tuple[str, State]


def steps(s: State, r: int, setting: Setting) -> Iterator[Step]:
    """What runner `r` may do next."""
    me = s.runners[r]
    if s.wake == AVAILABLE:
        yield _receive_wake(s, r, setting)
    if me.at == "idle":
        return
    if s.crashes and "runner" in setting.mortal:
        yield f"r{r} crashes at {me.at}", _crash(s, r)
    match me.at:
        case "load":
            yield from _load(s, r)
        case "work":
            yield _work(s, r, setting) if me.fresh else _reload(s, r)
        case "turn" | "request" | "again" | "resend" | "stream" | "wait":
            yield from _turn(s, r, setting)
        case "ack":
            yield f"r{r} acknowledges", _acknowledge(s, r)
        case _:
            yield f"r{r} looks again", _look_again(s, r, setting)


def _receive_wake(s: State, r: int, setting: Setting) -> Step:
    """The server may deliver a wake twice, and a newer wake before the drain of the first ends."""
    me, held = s.runners[r], s._replace(wake=r)
    if me.at == "idle":
        return f"r{r} takes the wake", _put(held, r, Runner("load", token=True))
    if me.token or me.newer == "current":
        return f"r{r} is given its wake again", held
    if not setting.serve_newer:
        return f"r{r} takes a newer wake for its own", s._replace(wake=NO_TOKEN)
    return f"r{r} keeps a newer wake", _put(held, r, me._replace(newer="current"))


def _load(s: State, r: int) -> Iterator[Step]:
    """Read the log. A live owner is left alone, unless it does not answer in time."""
    me = s.runners[r]
    if s.owner not in {NOBODY, GONE, r}:
        back = s._replace(wake=AVAILABLE) if me.token and s.wake != NO_TOKEN else s
        yield f"r{r} leaves it to r{s.owner}", _end_drain(back, r)
    yield f"r{r} reads the log", _put(s, r, me._replace(at="work", fresh=True))


def _reload(s: State, r: int) -> Step:
    return f"r{r} finds that the log moved", _put(s, r, s.runners[r]._replace(at="load"))


def _work(s: State, r: int, setting: Setting) -> Step:
    """One decision from the whole log, committed with the claim if the runner has none yet."""
    if s.interrupted:
        return f"r{r} honours the interrupt", _stop(s, r, setting)
    if s.owner != r and not is_moving(s) and setting.wakes_expire:
        # A wake from before an interrupt, or while a tool runs, has no work that was requested.
        return f"r{r} finds rest", _put(s, r, s.runners[r]._replace(at="ack"))
    if has_open_call(s) and s.owner == NOBODY and _must_resend(s, setting):
        return f"r{r} finds it parked and answered", _put(s, r, s.runners[r]._replace(at="resend"))
    if has_open_call(s) and s.owner == NOBODY:
        return f"r{r} finds it parked", _put(s, r, s.runners[r]._replace(at="ack"))
    if s.attempt and has_open_call(s):
        at = "again" if _is_unstarted(s) or _is_abandoned(s, setting) else "wait"
        return f"r{r} waits for the call", _commit(s._replace(owner=r), r, at, setting)
    inputs = _eligible(s, setting)
    if inputs or s.owed or s.attempt:
        return f"r{r} crosses the boundary", _commit(
            _cross_boundary(s, r, inputs), r, "turn", setting
        )
    if s.owner == r:
        return f"r{r} releases", _commit(_release(s), r, "ack", setting)
    return f"r{r} finds rest", _put(s, r, s.runners[r]._replace(at="ack"))


def _eligible(s: State, setting: Setting) -> tuple[int, ...]:
    steers = tuple(prompt for prompt in s.pending if setting.prompts[prompt] == "steer")
    if steers or s.owed or s.attempt:
        return steers
    return s.pending[:1]


def _cross_boundary(s: State, r: int, inputs: tuple[int, ...]) -> State:
    """Claim, settle the interrupted attempt, promote and dispatch, in one commit."""
    return s._replace(
        fault=s.fault if s.work_expected else "an earlier wake ran an interrupted session",
        owner=r,
        pending=tuple(prompt for prompt in s.pending if prompt not in inputs),
        promoted=(*s.promoted, *inputs),
        attempt="open",
        owed=False,
    )


def _turn(s: State, r: int, setting: Setting) -> Iterator[Step]:
    """An owner may write after a commit of somebody else, as long as it still owns the session."""
    me = s.runners[r]
    if s.owner != r and me.at not in {"request", "again", "resend"}:
        if setting.fenced:
            yield f"r{r} is fenced", _end_drain(s, r)
            return
        s = s._replace(fault="a runner wrote to a session that another owns")
    if me.at == "turn" and setting.workers and not s.call:
        called = s._replace(call="called")
        yield f"r{r} writes the call", _write(called, r, "request", setting)
    elif me.at == "turn":
        if s.interrupted:
            yield f"r{r} stops its turn", _stop(s, r, setting)
        yield _answer_turn(s, r, setting)
    elif me.at in {"request", "again", "resend"}:
        at = {"request": "stream", "again": "wait", "resend": "ack"}[me.at]
        yield f"r{r} queues the request", _put(_queue_request(s, setting), r, me._replace(at=at))
    elif me.at == "stream":
        finished = s._replace(attempt="finished")
        yield f"r{r} ends the stream", _write(finished, r, "wait", setting)
    else:
        yield from _wait(s, r, setting)


def _queue_request(s: State, setting: Setting) -> State:
    """An answer gets its own request, because the worker that asked may drop the first one now."""
    if s.ask == "granted" and setting.answer_brings_request:
        return s._replace(second=AVAILABLE) if s.second in {NEVER, NO_TOKEN} else s
    return s._replace(request=AVAILABLE) if s.request == NO_TOKEN else s


def _must_resend(s: State, setting: Setting) -> bool:
    if s.call == "called" and s.ask == "granted":
        return setting.answer_brings_request
    # Each look queues the request again. That changes nothing unless a request was lost.
    lossy = setting.losses and setting.abandoned_calls_are_sent_again
    return bool(lossy) and (_is_unstarted(s) or _is_abandoned(s, setting))


def _is_unstarted(s: State) -> bool:
    return s.call == "called" and not waits_for_a_person(s)


def _is_abandoned(s: State, setting: Setting) -> bool:
    """The call was started and its worker is gone; its request may be lost as well."""
    orphaned = s.call == "started" and s.starter == GONE
    return orphaned and bool(setting.losses) and setting.abandoned_calls_are_sent_again


def _wait(s: State, r: int, setting: Setting) -> Iterator[Step]:
    """A settlement or an interrupt ends the wait. After too long a wait the session parks."""
    me = s.runners[r]
    answered = _must_resend(s, setting) and s.second == NEVER
    if not has_open_call(s) or s.interrupted or answered:
        yield f"r{r} has waited", _put(s, r, me._replace(at="work", fresh=True))
    elif me.fresh:
        yield f"r{r} parks", _commit(s._replace(owner=NOBODY), r, "ack", setting)
    else:
        # Parking is a decision too: its commit is refused when anything was written meanwhile.
        yield f"r{r} reads on", _put(s, r, me._replace(fresh=True))


def _answer_turn(s: State, r: int, setting: Setting) -> Step:
    """The step's end and the release in one commit, which fails when input arrived."""
    done = s._replace(attempt="")
    if s.runners[r].fresh and not s.pending:
        return f"r{r} answers and releases", _commit(_release(done), r, "ack", setting)
    return f"r{r} answers", _write(done, r, "work", setting)


def _stop(s: State, r: int, setting: Setting) -> State:
    """Claim if need be, close the turn, settle the call and release, in one commit."""
    open_call = has_open_call(s)
    settled = s._replace(call="settled", settles=s.settles + 1) if open_call else s
    if s.ask == "pending":
        settled = settled._replace(ask="closed", person="done")
    requests_work = open_call and not setting.settlement_respects_interrupt
    work_requested = requests_work or (s.work_requested and setting.interrupt_keeps_later_wakes)
    rest = settled._replace(owner=NOBODY, interrupted=False, attempt="", owed=False)
    stopped = _commit(rest._replace(work_requested=work_requested), r, "ack", setting)
    # A wake after the interrupt may be older than this commit, so the runner always looks again.
    return _put(stopped, r, stopped.runners[r]._replace(fresh=False))


def _release(s: State) -> State:
    return s._replace(owner=NOBODY, work_requested=False)


def _acknowledge(s: State, r: int) -> State:
    """A stale acknowledgement removes the new holder's copy too: it is the same message."""
    me = s.runners[r]._replace(at="look")
    if not me.token:
        return _put(s, r, me)
    stale = tuple(
        runner._replace(token=False, newer="stale" if runner.newer else "") for runner in s.runners
    )
    return _put(s._replace(wake=NO_TOKEN, runners=stale), r, me._replace(token=False))


def _look_again(s: State, r: int, setting: Setting) -> State:
    moved = not s.runners[r].fresh
    wanted = setting.second_look and moved and is_moving(s) and s.owner == NOBODY
    return _end_drain((with_wake(s) if wanted else None) or s, r)


def _end_drain(s: State, r: int) -> State:
    """A newer wake that arrived during the drain is served next."""
    newer = s.runners[r].newer
    after = Runner("load", token=newer == "current") if newer else Runner()
    return _put(s, r, after)


def _crash(s: State, r: int) -> State:
    owner = GONE if s.owner == r else s.owner
    return _put(s._replace(owner=owner, crashes=s.crashes - 1), r, Runner())


def _commit(s: State, r: int, at: str, setting: Setting) -> State:
    """Commit a decision, which is refused unless the runner has seen the whole log."""
    assert s.runners[r].fresh or s.runners[r].at == "turn", "decisions are made from the whole log"
    return _write(s, r, at, setting)


def _write(s: State, r: int, at: str, setting: Setting) -> State:
    me = s.runners[r]._replace(at=at, fresh=True)
    return _put(after_commit(s, setting), r, me)


def _put(s: State, r: int, me: Runner) -> State:
    return s._replace(runners=(*s.runners[:r], me, *s.runners[r + 1 :]))
