"""A session on a replicated log: its commits, what a reader of a prefix sees, and what may go wrong.

A read may come from a follower and end early. The head comes from the leader and is never old. An
append is a compare-and-set at the leader, and its acknowledgement may be lost.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

NOBODY: Final = -1


Fact: TypeAlias = Literal[
    "created",
    "prompt",
    "turn",
    "answer",
    "release",
    "interrupt",
    "stop",
    "call",
    "start",
    "settle",
    "settle interrupted",
]


class CommitId(NamedTuple):
    """Who minted the id, and how many this writer had minted before."""

    writer: str
    number: int


class Commit(NamedTuple):
    """One commit: a fact of the session, who wrote it, the inputs that it promotes, and its id."""

    fact: Fact
    by: int
    id: CommitId
    inputs: tuple[int, ...] = ()


class Wake(NamedTuple):
    """The session's wake: the position that it speaks of, and the runner that holds it."""

    position: int
    holder: int = NOBODY


class Writer(NamedTuple):
    """An actor: its place in its work, how much of the log it has seen, and its current commit id."""

    at: str = "todo"
    seen: int = 0
    id: CommitId = CommitId("", 0)
    since: int = 0
    """How long the log was when the interrupt was asked for; the position of the wake that a runner took."""
    holds_wake: bool = False
    missed: tuple[int, ...] = ()
    """Commits before `seen` that it has not seen: it folded a later one without them."""


class State(NamedTuple):
    """Everything that can differ between two moments of one session."""

    log: tuple[Commit, ...]
    wake: Wake | None
    has_leader: bool
    prompts: tuple[Writer, ...]
    interrupter: Writer
    runners: tuple[Writer, ...]
    worker: Writer
    nudge: int
    """The position of the last nudge to the owner; 0 if there was none. It may be late, and come again."""
    # What may still go wrong: reads that lag, acknowledgements that are lost, elections, pauses.
    lags: int
    losses: int
    elections: int
    expiries: int
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Setting:
    """Who takes part, what may go wrong, and which rules are in force."""

    prompts: int = 1
    runners: int = 1
    interrupts: bool = False
    call: bool = False
    lags: int = 1
    losses: int = 0
    elections: int = 0
    expiries: int = 0
    # A decision not to write is confirmed by the leader's head.
    confirms_rest: bool = True
    # A refused append reads up to the leader's head before it looks for its own commit.
    reads_to_the_head: bool = True
    # A commit has the same id in all its tries.
    keeps_ids: bool = True
    # An append waits for the election of a leader.
    patient: bool = True
    # A wake carries a position, and its runner reads at least up to it.
    wakes_carry_positions: bool = True
    # A wake carries its commit too. A runner that has all before it folds it and does not read.
    wakes_carry_commits: bool = False
    # Ingest decides from what broadcasts told it, however old that is, without a read.
    follows: bool = False
    # The first runner owns the session and waits for the call. The worker nudges it.
    waits: bool = False
    # A nudge carries the settlement. A runner that has all before it folds it and does not read.
    nudges_carry_commits: bool = False
    # A runner folds a commit that somebody passed on only behind the commit just before it.
    folds_only_the_next: bool = True


class View(NamedTuple):
    """What a prefix of the log folds into."""

    exists: bool = False
    admitted: tuple[int, ...] = ()
    promoted: tuple[int, ...] = ()
    owner: int = NOBODY
    answered: bool = False
    interrupted: bool = False
    call: Literal["", "called", "started", "settled"] = ""

    @property
    def pending(self) -> tuple[int, ...]:
        return tuple(prompt for prompt in self.admitted if prompt not in self.promoted)

    @property
    def is_moving(self) -> bool:
        return self.interrupted or bool(self.pending)


def initial_state(setting: Setting) -> State:
    """A session that its caller knows to exist."""
    log = [Commit("created", NOBODY, CommitId("create", 0))]
    if setting.waits:
        log.append(Commit("turn", 0, CommitId("r0", 0)))
    if setting.call:
        log.append(Commit("call", NOBODY, CommitId("call", 0)))
    return State(
        log=tuple(log),
        wake=None,
        has_leader=True,
        prompts=tuple(
            Writer(id=CommitId(f"prompt{number}", 0)) for number in range(setting.prompts)
        ),
        interrupter=Writer("todo" if setting.interrupts else "done", id=CommitId("interrupt", 0)),
        runners=tuple(
            Writer("wait", len(log), CommitId("r0", 1))
            if setting.waits and number == 0
            else Writer("idle", id=CommitId(f"r{number}", 0))
            for number in range(setting.runners)
        ),
        worker=Writer("todo" if setting.call else "done", id=CommitId("worker", 0)),
        nudge=0,
        lags=setting.lags,
        losses=setting.losses,
        elections=setting.elections,
        expiries=setting.expiries,
    )


def fold(log: tuple[Commit, ...]) -> View:
    """The session after some commits."""
    view = View()
    for commit in log:
        view = _evolve(view, commit)
    return view


def _evolve(view: View, commit: Commit) -> View:
    match commit.fact:
        case "created":
            return view._replace(exists=True)
        case "prompt":
            return view._replace(admitted=(*view.admitted, commit.by))
        case "turn":
            promoted = (*view.promoted, *commit.inputs)
            return view._replace(promoted=promoted, owner=commit.by, answered=False)
        case "answer":
            return view._replace(answered=True)
        case "release":
            return view._replace(owner=NOBODY)
        case "interrupt":
            return view._replace(interrupted=True)
        case "stop":
            return view._replace(owner=NOBODY, interrupted=False)
        case "call":
            return view._replace(call="called")
        case "start":
            return view._replace(call="started")
        case "settle" | "settle interrupted":
            return view._replace(call="settled")


def seen_by(s: State, me: Writer) -> View:
    """The session as a writer sees it."""
    if not me.missed:
        return fold(s.log[: me.seen])
    return fold(tuple(s.log[place] for place in range(me.seen) if place not in me.missed))


def readable(s: State, me: Writer, at_least: int = 0) -> Iterator[tuple[State, int]]:
    """How far a read may come: to the head, or to any earlier place that a follower has reached."""
    yield s, len(s.log)
    if s.lags:
        for place in range(max(me.seen, at_least), len(s.log)):
            yield s._replace(lags=s.lags - 1), place


def assumed(s: State, setting: Setting, me: Writer) -> Iterator[tuple[State, int]]:
    """How far a writer may be before it decides: as a read brings it, or as old as what it followed."""
    yield from readable(s, me)
    if setting.follows:
        for place in range(me.seen, len(s.log)):
            yield s, place


def fault_of(log: tuple[Commit, ...]) -> str:
    """The rule that the last commit of a log broke."""
    before, commit = fold(log[:-1]), log[-1]
    match commit.fact:
        case "prompt" if commit.by in before.admitted:
            return "a prompt was admitted twice"
        case "turn" if set(commit.inputs) & set(before.promoted):
            return "an input was promoted twice"
        case "answer" if before.answered:
            return "a fact was written twice"
        case "answer" | "release" if before.owner != commit.by:
            return "a runner wrote to a session that another owns"
        case "start" if before.call != "called":
            return "a call was started twice"
        case "settle interrupted":
            return "a call that never ran was settled as interrupted"
        case _:
            return ""
