"""Steps of a tool worker: start a `once` call by a commit, run it, settle it."""

from collections.abc import Iterator

from tests.model.replicated.append import Step, append, resolve_refusal
from tests.model.replicated.log import NOBODY, Commit, Setting, State, Writer, fold, readable


def steps(s: State, setting: Setting) -> Iterator[Step]:
    """What the worker of the call may do next."""
    me = s.worker
    match me.at:
        case "todo":
            # A request carries the position of its call, so the worker reads at least up to it.
            for read, place in readable(s, me, 3 if setting.waits else 2):
                yield f"worker: reads {place}", _put(read, me._replace(at="start", seen=place))
        case "start":
            yield from _start(s, me)
        case "refused start":
            yield from resolve_refusal(s, me, _put, setting, then="run", name="worker")
        case "run":
            commit = Commit("settle", NOBODY, me.id)
            yield from append(s, me, commit, _put, then=_after(setting), name="worker")
        case "refused run" | "refused fail":
            yield from resolve_refusal(s, me, _put, setting, then=_after(setting), name="worker")
        case "fail":
            commit = Commit("settle interrupted", NOBODY, me.id)
            yield from append(s, me, commit, _put, then=_after(setting), name="worker")
        case "nudge":
            yield from _nudge(s, me)
        case _:
            return


def _start(s: State, me: Writer) -> Iterator[Step]:
    """A `once` call that was started before never runs again: its outcome is unknown."""
    match fold(s.log[: me.seen]).call:
        case "started":
            yield "worker: finds a start without a worker", _put(s, me._replace(at="fail"))
        case "settled":
            yield "worker: finds the call settled", _put(s, me._replace(at="done"))
        case _:
            commit = Commit("start", NOBODY, me.id)
            yield from append(s, me, commit, _put, then="run", name="worker")


def _nudge(s: State, me: Writer) -> Iterator[Step]:
    """Tell the owner how far the log is, with the settlement. Then wake: the owner may have parked."""
    done = _put(s, me._replace(at="done"))
    yield "worker: nudges the owner", done._replace(nudge=me.seen)
    if s.losses:
        yield "worker: its nudge is lost", done._replace(losses=s.losses - 1)


def _after(setting: Setting) -> str:
    return "nudge" if setting.waits else "done"


def _put(s: State, me: Writer) -> State:
    return s._replace(worker=me)
