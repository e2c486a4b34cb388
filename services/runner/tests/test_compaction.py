"""Compaction carried out: foreseen, after an overflow, and on request; deaths and interrupts in it."""

import asyncio
import json

import pytest
from prometheus_client import REGISTRY
from starlette.responses import Response

from fairlead_eventlog.memory import MemoryDeltas
from fairlead_runner.drain import Drain
from fairlead_runner.ledger import Fenced, Ledger
from fairlead_runner.wakes import Watch
from fairlead_schema.context import Unavailable
from fairlead_schema.delta import CompactionDelta
from fairlead_schema.events import (
    BudgetSet,
    CompactionEnded,
    CompactionFailed,
    CompactionRequested,
    CompactionStarted,
    CompactionUsed,
    ExecutionClaimed,
    InterruptRequested,
    PromptPromoted,
)
from fairlead_schema.prompt import Prompt
from fairlead_session.history import history
from fairlead_session.verify import verify
from services.runner.tests.conftest import (
    AT,
    DATE,
    LONG,
    World,
    admitted,
    of,
    refuses,
    says,
    standing,
    until,
)

TOO_LONG = refuses(400, "prompt is too long: 9000 tokens")


async def test_a_request_that_seems_too_large_is_compacted_first(small: World) -> None:
    """G-02, G-12, G-19, G-20, G-39: started, summary, ended, then the same turn from the checkpoint."""
    await small.said("msg_1", LONG)
    before = len(await small.types())
    small.provider.replies.extend([says("SUMMARY"), says("onward")])

    await small.said("msg_2", f"{LONG} Where to?")

    types = await small.types(after=before)
    assert types[:9] == [
        "prompt.admitted",
        "execution.claimed",
        "prompt.promoted",
        "compaction.started",
        "compaction.used",
        "compaction.ended",
        "context.replaced",
        "attempt.dispatched",
        "step.started",
    ]
    (started,) = of(await small.events(), CompactionStarted)
    (ended,) = of(await small.events(), CompactionEnded)
    assert (started.reason, ended.reason, ended.text) == ("auto", "auto", "SUMMARY")
    assert started.message_id == ended.message_id
    (system, checkpoint) = small.provider.asked()
    assert system[0] == "system"
    assert "SUMMARY" in checkpoint[1]
    assert len(json.dumps(small.provider.requests[-1])) < 2_000


async def test_the_summarys_request_is_one_bare_message(small: World) -> None:
    """G-13: the same model and headers, no system, no tools, its own output."""
    await small.said("msg_1", LONG)
    await small.said("msg_2", LONG)

    turn, summary = small.provider.requests[0], small.provider.requests[1]
    assert [one["role"] for one in summary["messages"]] == ["user"]
    assert summary["model"] == turn["model"]
    assert "tools" not in summary
    assert 400 in summary.values()
    for name in ("x-session-id", "x-session-affinity"):
        assert small.provider.headers[1][name] == small.provider.headers[0][name]


async def test_a_summary_is_shown_live_and_paid_for(small: World) -> None:
    """G-17: its deltas are live only; its usage counts like a turn's."""
    await small.said("msg_1", LONG)
    small.provider.replies.append(says("SUMMARY"))
    await small.said("msg_2", LONG)

    assert isinstance(small.eventlog.deltas, MemoryDeltas)
    deltas = [one for _at, one in small.eventlog.deltas.sent if isinstance(one, CompactionDelta)]
    assert [one.text for one in deltas] == ["SU", "MMARY"]
    (used,) = of(await small.events(), CompactionUsed)
    profile = (await small.session()).profile
    assert profile is not None
    assert (used.cost, profile.cost) == (3.0, 9.0)


@pytest.mark.parametrize(
    "reply", [refuses(500, "broken"), says("  "), says("no shorter " * 4000)],
    ids=["refused", "blank", "no smaller"],
)  # fmt: skip
async def test_without_a_summary_the_request_proceeds(small: World, reply: Response) -> None:
    """G-14: nothing ended, the reason is visible, and it is not tried again in this turn."""
    await small.said("msg_1", LONG)
    small.provider.replies.append(reply)

    await small.said("msg_2", LONG)

    events = await small.events()
    assert of(events, CompactionEnded) == []
    (failed,) = of(events, CompactionFailed)
    assert (failed.reason, failed.outcome) == ("auto", "failed")
    assert len(of(events, CompactionStarted)) == 1
    assert [role for role, _text in small.provider.asked()] == [
        "system", "user", "assistant", "user",
    ]  # fmt: skip


async def test_input_that_comes_during_a_summary_waits_for_the_next_boundary(small: World) -> None:
    """B-22: the rebuilt turn promotes nothing."""
    await small.said("msg_1", LONG)

    async def summary() -> Response:
        await small.write(admitted("msg_3", "steer"))
        return says("SUMMARY")

    small.provider.replies.append(summary)
    await small.said("msg_2", LONG)

    types = await small.types()
    ended = types.index("compaction.ended")
    assert types.index("attempt.dispatched", ended) < types.index("prompt.promoted", ended)
    assert "steer" not in json.dumps(small.provider.requests[-2])
    assert small.provider.asked()[-1] == ("user", "steer")


@pytest.mark.parametrize("cause", ["auto", "overflow", "manual"])
async def test_an_interrupt_during_the_summary_leaves_nothing(small: World, cause: str) -> None:
    """G-34: no compaction message, the previous boundary active, and rest."""
    await small.said("msg_1", LONG)
    before = history(await small.session())
    hanging = asyncio.Event()

    async def hangs() -> Response:
        await hanging.wait()
        return says("SUMMARY")

    small.provider.replies.extend([TOO_LONG, hangs] if cause == "overflow" else [hangs])
    asked = CompactionRequested() if cause == "manual" else None
    text = LONG if cause == "auto" else "Where to?"
    await small.write(asked or admitted("msg_2", text))
    await small.wake()
    watch = Watch(small.tackle())
    count = len(small.provider.requests) + (2 if cause == "overflow" else 1)

    async with standing(watch):
        await until(lambda: len(small.provider.requests) == count)
        await small.write(InterruptRequested())
        watch.nudge(AT)
        await until(lambda: not small.wakes)
        hanging.set()

    session = await small.session()
    assert (session.rested, session.attempt, session.owed) == ("interrupted", None, False)
    assert not session.compaction_requested
    assert of(await small.events(), CompactionEnded) == []
    assert history(session)[: len(before)] == before


async def test_a_requested_compaction_runs_in_an_idle_session(small: World) -> None:
    """G-40: with its own reason; then the session rests and nothing is asked any more."""
    await small.said("msg_1", LONG)
    small.provider.replies.append(says("SUMMARY"))
    before = len(small.provider.requests)

    await small.write(CompactionRequested())
    await small.drained()

    session, events = await small.session(), await small.events()
    assert [one.reason for one in of(events, CompactionEnded)] == ["manual"]
    assert not session.compaction_requested
    assert (session.rested, session.owner) == ("idle", None)
    assert len(small.provider.requests) == before + 1
    await small.said("msg_2", "Where to?")
    assert [role for role, _text in small.provider.asked()] == ["system", "user", "user"]


async def test_a_requested_compaction_takes_what_is_recent_too(small: World) -> None:
    """G-10, G-40: when there is nothing else; nobody would ask for nothing."""
    small.config["compaction"]["keep_tokens"] = 8_000
    await small.said("msg_1", "sail " * 400)
    small.provider.replies.append(says("SUMMARY"))

    await small.write(CompactionRequested())
    await small.drained()

    (ended,) = of(await small.events(), CompactionEnded)
    assert (ended.text, ended.recent) == ("SUMMARY", "")


@pytest.mark.parametrize("cause", ["auto", "overflow"])
async def test_a_runner_that_must_leave_hands_the_summary_over(small: World, cause: str) -> None:
    """G-15, P-02: the next one makes it, and the try is counted."""
    small.config["runner"] = {"grace_s": 0.05}
    await small.said("msg_1", LONG)
    hanging = asyncio.Event()

    async def hangs() -> Response:
        await hanging.wait()
        return says("too late")

    small.provider.replies.extend([TOO_LONG, hangs] if cause == "overflow" else [hangs])
    await small.write(admitted("msg_2", "Where to?" if cause == "overflow" else LONG))
    await small.wake()
    async with standing(Watch(small.tackle())):
        await until(lambda: len(small.provider.requests) == (3 if cause == "overflow" else 2))
    hanging.set()
    left = await small.session()

    small.provider.replies.append(says("SUMMARY"))
    await small.drained("run_b")

    assert (left.rested, left.compacting.tries) == ("handover", 1)
    assert [one.text for one in of(await small.events(), CompactionEnded)] == ["SUMMARY"]
    assert (await small.session()).rested == "idle"
    assert verify(await small.recorded()) == []


@pytest.mark.parametrize(
    ("given", "outcome", "why"),
    [
        ("nothing", "nothing", "nothing was said yet"),
        ("budget", "refused", "tokens"),
        ("broken", "failed", "broken"),
        ("no key", "refused", "FAIRLEAD_NO_SUCH_KEY is not set"),
        ("tried", "failed", "begun 2 times"),
    ],
)
async def test_a_request_that_comes_to_nothing_says_why_and_is_over(
    small: World, given: str, outcome: str, why: str
) -> None:
    """G-40, G-15: nobody is woken for it again."""
    if given != "nothing":
        await small.said("msg_1", LONG)
    if given == "budget":
        await small.write(BudgetSet(tokens=1))
    if given == "broken":
        small.provider.replies.append(refuses(400, "broken"))
    if given == "no key":
        small.config["provider"]["acme"]["api_key_env"] = "FAIRLEAD_NO_SUCH_KEY"
    await small.write(CompactionRequested())
    if given == "tried":
        dead = ExecutionClaimed(generation=2, runner="run_dead")
        begun = CompactionStarted(message_id="msg_c", reason="manual")
        await small.write(dead, begun, begun)

    await small.drained("run_b")

    failed = of(await small.events(), CompactionFailed)
    session = await small.session()
    assert [(one.reason, one.outcome) for one in failed] == [("manual", outcome)]
    assert why in failed[0].message
    assert not session.compaction_requested
    assert (session.owner, session.stirring) == (None, False)


@pytest.mark.parametrize("starts", [1, 2])
async def test_a_dead_owners_summary_is_made_again_but_not_for_ever(
    small: World, starts: int
) -> None:
    """G-15: a start without an end changes nothing; the second death ends the trying."""
    await small.said("msg_1", LONG)
    promoted = PromptPromoted(message_id="msg_2", prompt=Prompt(text=LONG), created=1)
    begun = CompactionStarted(message_id="msg_c", reason="auto")
    dead = ExecutionClaimed(generation=2, runner="run_dead")
    await small.write(admitted("msg_2", LONG), dead, promoted, *[begun] * starts)
    small.provider.replies.append(says("SUMMARY"))

    await small.drained("run_b")

    events = await small.events()
    assert len(of(events, CompactionStarted)) == 2
    assert len(of(events, CompactionEnded)) == 2 - starts
    assert len(of(events, PromptPromoted)) == 2
    assert (await small.session()).rested == "idle"


async def test_a_runner_fenced_during_a_summary_writes_nothing_more(small: World) -> None:
    """P-02, G-15."""
    await small.said("msg_1", LONG)

    async def overtaken() -> Response:
        await small.write(ExecutionClaimed(generation=3, runner="run_b"))
        return says("SUMMARY")

    small.provider.replies.append(overtaken)
    await small.write(admitted("msg_2", LONG))
    tackle = small.tackle()
    ledger = Ledger(AT, await tackle.folded.load(AT), small.eventlog, tackle.folded)

    with pytest.raises(Fenced):
        await Drain(tackle, ledger).run()

    assert (await small.types())[-2:] == ["compaction.started", "execution.claimed"]


async def test_a_blocked_baseline_keeps_the_old_one(small: World) -> None:
    """F-39: and the next boundary that can observe renders it."""
    await small.said("msg_1", LONG)
    small.observe(Unavailable(key="core/date", reason="hung"))
    small.provider.replies.append(says("SUMMARY"))
    await small.said("msg_2", LONG)
    blocked = (await small.session()).epoch

    small.observe(DATE)
    await small.said("msg_3", "Where to?")

    epoch = (await small.session()).epoch
    assert blocked is not None
    assert epoch is not None
    assert (await small.types()).count("context.replaced") == 1
    assert epoch.seq > blocked.seq
    assert (await small.types())[epoch.seq - 1] == "compaction.ended"


async def test_compactions_are_counted(small: World) -> None:
    def counted(cause: str, outcome: str) -> float:
        labels = {"cause": cause, "outcome": outcome}
        return REGISTRY.get_sample_value("fairlead_compactions_total", labels) or 0.0

    before = counted("auto", "ended"), counted("manual", "nothing")
    await small.write(CompactionRequested())
    await small.drained()
    await small.said("msg_1", LONG)
    small.provider.replies.append(says("SUMMARY"))
    await small.said("msg_2", LONG)

    assert counted("auto", "ended") == before[0] + 1
    assert counted("manual", "nothing") == before[1] + 1
