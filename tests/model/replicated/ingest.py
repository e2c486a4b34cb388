"""Steps of ingest: admit a prompt or an interrupt behind what it has read, then wake the session."""

from collections.abc import Iterator

from tests.model.replicated.append import Put, Step, append, confirm, resolve_refusal
from tests.model.replicated.log import (
    NOBODY,
    Commit,
    Setting,
    State,
    Wake,
    Writer,
    assumed,
    fold,
)


def steps(s: State, setting: Setting) -> Iterator[Step]:
    """What ingest may do next, for each prompt and for the interrupt."""
    for number, me in enumerate(s.prompts):
        yield from _admit(s, number, me, setting)
    yield from _interrupt(s, s.interrupter, setting)


def _admit(s: State, number: int, me: Writer, setting: Setting) -> Iterator[Step]:
    name, put = f"prompt {number}", _put_prompt(number)
    match me.at:
        case "todo":
            for read, place in assumed(s, setting, me):
                yield f"{name}: reads {place}", put(read, me._replace(at="admit", seen=place))
        case "admit":
            yield from _decide_admission(s, number, me, setting)
        case "refused admit":
            yield from resolve_refusal(s, me, put, setting, then="wake", name=name)
        case "wake":
            yield from _wake(s, me, put, name)
        case _:
            return


def _decide_admission(s: State, number: int, me: Writer, setting: Setting) -> Iterator[Step]:
    name, put = f"prompt {number}", _put_prompt(number)
    view = fold(s.log[: me.seen])
    if not view.exists and setting.confirms_rest:
        step = confirm(s, me, put, name=name)
        assert step is not None, "the caller knows that the session exists"
        if s.has_leader:
            yield step
    elif not view.exists:
        missing = s._replace(fault=s.fault or "an existing session was not found")
        yield f"{name}: finds no session", put(missing, me._replace(at="done"))
    elif number in view.admitted:
        # An exact retry: the message id is in the log already.
        yield f"{name}: finds itself admitted", put(s, me._replace(at="wake"))
    else:
        commit = Commit("prompt", number, me.id)
        yield from append(s, me, commit, put, then="wake", name=name)


def _interrupt(s: State, me: Writer, setting: Setting) -> Iterator[Step]:
    name = "interrupt"
    match me.at:
        case "todo":
            for read, place in assumed(s, setting, me):
                looking = me._replace(at="stop", seen=place, since=len(s.log))
                yield f"{name}: reads {place}", _put_interrupter(read, looking)
        case "stop":
            yield from _decide_interrupt(s, me, setting)
        case "refused stop":
            yield from resolve_refusal(s, me, _put_interrupter, setting, then="wake", name=name)
        case "wake":
            yield from _wake(s, me, _put_interrupter, name)
        case _:
            return


def _decide_interrupt(s: State, me: Writer, setting: Setting) -> Iterator[Step]:
    view = fold(s.log[: me.seen])
    if view.owner != NOBODY and not view.interrupted:
        commit = Commit("interrupt", NOBODY, me.id)
        yield from append(s, me, commit, _put_interrupter, then="wake", name="interrupt")
        return
    step = confirm(s, me, _put_interrupter, name="interrupt") if setting.confirms_rest else None
    if step is not None:
        if s.has_leader:
            yield step
        return
    at_request, now = fold(s.log[: me.since]), fold(s.log)
    dropped = NOBODY != at_request.owner == now.owner and not now.interrupted
    fault = "an interrupt was answered as idle while a turn ran" if dropped else ""
    idle = s._replace(fault=s.fault or fault)
    yield "interrupt: finds nothing active", _put_interrupter(idle, me._replace(at="done"))


def _wake(s: State, me: Writer, put: Put, name: str) -> Iterator[Step]:
    """Leave a wake. A refused wake is repeated until the queue takes it or the session is at rest."""
    if s.wake is None:
        yield f"{name}: wakes", put(s._replace(wake=Wake(me.seen)), me._replace(at="done"))
    else:
        # The runner that holds the other wake looks again before it rests.
        yield f"{name}: gives up its refused wake", put(s, me._replace(at="done"))


def _put_prompt(number: int) -> Put:
    def put(s: State, me: Writer) -> State:
        return s._replace(prompts=(*s.prompts[:number], me, *s.prompts[number + 1 :]))

    return put


def _put_interrupter(s: State, me: Writer) -> State:
    return s._replace(interrupter=me)
