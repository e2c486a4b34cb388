"""One session of the wake protocol: its folded log, its two queues, and the actors.

Of positions, generations and wake ids the state keeps only whether they are current: `fresh` means that an actor
has seen the whole log, `token` that a runner still holds the session's wake.
"""

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

from fairlead_schema.prompt import Delivery

NOBODY: Final = -1
GONE: Final = -2  # An owner or a starter that died; the log still names it.

NO_TOKEN: Final = -1
AVAILABLE: Final = -2  # In the queue, held by nobody; otherwise the number of its holder.
NEVER: Final = -3  # No such request was made yet.

Attempt: TypeAlias = Literal["", "open", "finished"]
Call: TypeAlias = Literal["", "called", "started", "settled"]
Ask: TypeAlias = Literal["", "pending", "granted", "closed"]
Actor: TypeAlias = Literal["ingest", "runner", "worker"]


class Runner(NamedTuple):
    """A runner's place in its drain; `newer` is a second wake that waits for the first one's end."""

    at: str = "idle"
    fresh: bool = False
    token: bool = False
    newer: Literal["", "current", "stale"] = ""


class Worker(NamedTuple):
    """A tool worker's place in its call; `second` holds the request that an answer brought."""

    at: str = "idle"
    fresh: bool = False
    second: bool = False


class State(NamedTuple):
    """Everything that can differ between two moments of one session."""

    # The log, folded.
    pending: tuple[int, ...]
    promoted: tuple[int, ...]
    owed: bool
    attempt: Attempt
    call: Call
    ask: Ask
    starter: int
    owner: int
    interrupted: bool
    work_requested: bool
    # The queues.
    wake: int
    request: int
    second: int
    # The actors.
    prompts: tuple[str, ...]
    interrupter: str
    person: str
    runners: tuple[Runner, ...]
    workers: tuple[Worker, ...]
    # What may still go wrong.
    crashes: int
    expiries: int
    losses: int
    # Only the checker reads these. `work_expected`: a caller wants work since the last interrupt.
    work_expected: bool
    starts: int
    settles: int
    fault: str


@dataclass(frozen=True, slots=True)
class Setting:
    """What is explored: how many of everybody, what may fail, and which rules are in force."""

    prompts: tuple[Delivery, ...] = ("steer", "steer")
    runners: int = 2
    workers: int = 0
    interrupts: int = 0
    # A person is asked before the call begins, and permits or declines it.
    asks: Literal["", "permit", "decline"] = ""
    crashes: int = 0
    expiries: int = 0
    # A server that is killed may lose a request that it has acknowledged.
    losses: int = 0
    mortal: frozenset[Actor] = frozenset({"ingest", "runner", "worker"})
    # A `once` call is never started twice; a pure one may be.
    once: bool = True
    sweep: bool = True
    # The rules that naive variants leave out.
    second_look: bool = True
    retry: bool = True
    serve_newer: bool = True
    interrupt_keeps_later_wakes: bool = True
    wakes_expire: bool = True
    settlement_wakes: bool = True
    settlement_respects_interrupt: bool = True
    answer_wakes: bool = True
    answer_brings_request: bool = True
    answer_respects_interrupt: bool = True
    abandoned_calls_are_sent_again: bool = True
    fenced: bool = True
    # Ingest leaves a refused wake to the runner that owns the session behind its commit. An owner that
    # it saw before its commit does not count: it may have released.
    owner_counts: bool = True
    earlier_owner_counts: bool = False
    # Ingest may give up a refused wake after a while, as the sweep has the session then.
    patient: bool = True


def initial_state(setting: Setting) -> State:
    """The state before anything happened."""
    return State(
        pending=(),
        promoted=(),
        owed=False,
        attempt="",
        call="",
        ask="",
        starter=NOBODY,
        owner=NOBODY,
        interrupted=False,
        work_requested=False,
        wake=NO_TOKEN,
        request=NO_TOKEN,
        second=NEVER,
        prompts=("todo",) * len(setting.prompts),
        interrupter="todo" if setting.interrupts else "done",
        person="todo" if setting.asks else "done",
        runners=(Runner(),) * setting.runners,
        workers=(Worker(),) * setting.workers,
        crashes=setting.crashes,
        expiries=setting.expiries,
        losses=setting.losses,
        work_expected=False,
        starts=0,
        settles=0,
        fault="",
    )


def has_open_call(s: State) -> bool:
    """A call is in the log without its settlement."""
    return s.call in {"called", "started"}


def waits_for_a_person(s: State) -> bool:
    """Whether the call cannot begin before somebody answers."""
    return s.call == "called" and s.ask == "pending"


def is_moving(s: State) -> bool:
    """Whether work was requested that no runner has finished."""
    requested = s.work_requested and not waits_for_a_person(s)
    return s.interrupted or (requested and bool(s.pending or s.owed or s.attempt))


def is_undone(s: State) -> bool:
    """Whether a caller still waits for something, whatever the protocol itself believes."""
    return s.interrupted or bool(s.attempt) or (s.work_expected and bool(s.pending or s.owed))


def after_commit(s: State, setting: Setting) -> State:
    """The state after a commit: no actor has seen the whole log any more."""
    return _note_fault(
        s._replace(
            runners=tuple(runner._replace(fresh=False) for runner in s.runners),
            workers=tuple(worker._replace(fresh=False) for worker in s.workers),
        ),
        setting,
    )


def with_wake(s: State) -> State | None:
    """The state with a wake in the queue; None if the server refuses a second wake."""
    return s._replace(wake=AVAILABLE) if s.wake == NO_TOKEN else None


def canonical(s: State) -> State:
    """One state for all that differ only in the numbers of equal runners and equal workers."""
    if _must_swap(s.runners, (s.owner, s.wake)):
        runners = s.runners[::-1]
        s = s._replace(runners=runners, owner=_swap(s.owner), wake=_swap(s.wake))
    if _must_swap(s.workers, (s.starter, s.request, s.second)):
        s = s._replace(
            workers=s.workers[::-1],
            starter=_swap(s.starter),
            request=_swap(s.request),
            second=_swap(s.second),
        )
    return s


def _must_swap(actors: tuple[Runner, ...] | tuple[Worker, ...], numbers: tuple[int, ...]) -> bool:
    """Of two actors the smaller comes first; of two equal ones, the one that is named first."""
    if len(actors) < 2:
        return False
    if actors[0] != actors[1]:
        return actors[0] > actors[1]
    return next((number for number in numbers if number >= 0), 0) == 1


def _swap(number: int) -> int:
    return 1 - number if number >= 0 else number


def _note_fault(s: State, setting: Setting) -> State:
    """Note the first rule that a commit broke."""
    faults = (
        (len(set(s.promoted)) < len(s.promoted), "an input was promoted twice"),
        (setting.once and s.starts > 1, "a once call was started twice"),
        (bool(setting.asks and s.starts and s.ask != "granted"), "a call began unpermitted"),
        (s.settles > (s.call == "settled"), "a call was settled twice"),
        (
            not s.work_expected and s.work_requested and not s.interrupted,
            "an interrupt lost its effect",
        ),
    )
    return s._replace(fault=next((text for bad, text in faults if bad), s.fault))
