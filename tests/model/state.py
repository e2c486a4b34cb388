"""One session of the wake protocol: what its log says, its two queues, and everybody who acts on it.

Positions, generations and wake ids only matter by whether they are current, so that is all a state keeps:
`fresh` is a writer that has seen the whole log, `token` a runner whose wake is still the session's.
"""

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

from fairlead_schema.prompt import Delivery

NOBODY: Final = -1
GONE: Final = -2  # An owner or a starter that died: the log still names it, nobody answers for it.

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
    stirring: bool
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
    # Seen by the checker alone: whether somebody asked for work since the last interrupt.
    asked: bool
    starts: int
    settles: int
    wrong: str


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
    forsaken_calls_are_sent_again: bool = True
    fenced: bool = True
    # Ingest may give up a refused wake after a while, as the sweep has the session then.
    patient: bool = True


def start(setting: Setting) -> State:
    """Nothing has happened yet."""
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
        stirring=False,
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
        asked=False,
        starts=0,
        settles=0,
        wrong="",
    )


def unsettled(s: State) -> bool:
    """A call is in the log without its settlement."""
    return s.call in {"called", "started"}


def waits_for_a_person(s: State) -> bool:
    """Whether the call cannot begin before somebody answers."""
    return s.call == "called" and s.ask == "pending"


def moving(s: State) -> bool:
    """Whether there is work that somebody was asked to do and nobody has rested from."""
    stirring = s.stirring and not waits_for_a_person(s)
    return s.interrupted or (stirring and bool(s.pending or s.owed or s.attempt))


def undone(s: State) -> bool:
    """What the world would complain about, whatever the protocol believes."""
    return s.interrupted or bool(s.attempt) or (s.asked and bool(s.pending or s.owed))


def written(s: State, setting: Setting) -> State:
    """The state after a commit: whoever had seen the whole log has not any more."""
    return _checked(
        s._replace(
            runners=tuple(one._replace(fresh=False) for one in s.runners),
            workers=tuple(one._replace(fresh=False) for one in s.workers),
        ),
        setting,
    )


def woken(s: State) -> State | None:
    """The state with a wake left; None: refused, there is one."""
    return s._replace(wake=AVAILABLE) if s.wake == NO_TOKEN else None


def _checked(s: State, setting: Setting) -> State:
    """Note what no commit may ever do."""
    faults = (
        (len(set(s.promoted)) < len(s.promoted), "an input was promoted twice"),
        (setting.once and s.starts > 1, "a once call was started twice"),
        (bool(setting.asks and s.starts and s.ask != "granted"), "a call began unpermitted"),
        (s.settles > (s.call == "settled"), "a call was settled twice"),
        (not s.asked and s.stirring and not s.interrupted, "an interrupt lost its effect"),
    )
    return s._replace(wrong=next((text for bad, text in faults if bad), s.wrong))
