"""Compaction before a request that seems too large, and what the model sees after it."""

import json

import pytest
from prometheus_client import REGISTRY
from starlette.responses import Response

from fairlead_eventlog.memory.deltas import MemoryDeltas
from fairlead_runner.metrics import EPOCHS
from fairlead_schema.context import UnavailableSource
from fairlead_schema.delta import CompactionDelta
from fairlead_schema.events import (
    CompactionEnded,
    CompactionFailed,
    CompactionRequested,
    CompactionStarted,
    CompactionUsed,
    ContextInitialised,
    ContextReplaced,
    SessionMoved,
)
from fairlead_schema.location import LocationRef
from services.runner.tests.conftest import (
    DATE,
    LONG,
    World,
    admitted,
    error_reply,
    events_of,
    text_reply,
)

TOO_LONG = error_reply(400, "prompt is too long: 9000 tokens")


async def test_a_request_that_seems_too_large_is_compacted_first(small: World) -> None:
    """G-02, G-12, G-19, G-20, G-39: started, summary, ended, then the same turn from the checkpoint."""
    await small.prompt("msg_1", LONG)
    before = len(await small.types())
    small.provider.replies.extend([text_reply("SUMMARY"), text_reply("onward")])

    await small.prompt("msg_2", f"{LONG} Where to?")

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
    (started,) = events_of(await small.events(), CompactionStarted)
    (ended,) = events_of(await small.events(), CompactionEnded)
    assert (started.reason, ended.reason, ended.text) == ("auto", "auto", "SUMMARY")
    assert started.message_id == ended.message_id
    (system, checkpoint) = small.provider.messages()
    assert system[0] == "system"
    assert "SUMMARY" in checkpoint[1]
    assert len(json.dumps(small.provider.requests[-1])) < 2_000


async def test_the_summarys_request_is_one_bare_message(small: World) -> None:
    """G-13: the same model and headers, no system, no tools, its own output."""
    await small.prompt("msg_1", LONG)
    await small.prompt("msg_2", LONG)

    turn, summary = small.provider.requests[0], small.provider.requests[1]
    assert [item["role"] for item in summary["messages"]] == ["user"]
    assert summary["model"] == turn["model"]
    assert "tools" not in summary
    assert 400 in summary.values()
    for name in ("x-session-id", "x-session-affinity"):
        assert small.provider.headers[1][name] == small.provider.headers[0][name]


async def test_a_summary_is_shown_live_and_paid_for(small: World) -> None:
    """Q-12, G-17: its deltas are live only; its usage counts like that of a turn."""
    await small.prompt("msg_1", LONG)
    small.provider.replies.append(text_reply("SUMMARY"))
    await small.prompt("msg_2", LONG)

    assert isinstance(small.eventlog.deltas, MemoryDeltas)
    deltas = [item for _at, item in small.eventlog.deltas.sent if isinstance(item, CompactionDelta)]
    assert [item.text for item in deltas] == ["SUMMARY"]
    (used,) = events_of(await small.events(), CompactionUsed)
    assert (used.cost, (await small.session()).usage.cost) == (3.0, 9.0)


@pytest.mark.parametrize(
    "reply", [error_reply(500, "broken"), text_reply("  "), text_reply("no shorter " * 4000)],
    ids=["refused", "blank", "no smaller"],
)  # fmt: skip
async def test_without_a_summary_the_request_proceeds(small: World, reply: Response) -> None:
    """G-14: no compaction ended, the reason is visible, and the turn does not try again."""
    await small.prompt("msg_1", LONG)
    small.provider.replies.append(reply)

    await small.prompt("msg_2", LONG)

    events = await small.events()
    assert events_of(events, CompactionEnded) == []
    (failed,) = events_of(events, CompactionFailed)
    assert (failed.reason, failed.outcome) == ("auto", "failed")
    assert len(events_of(events, CompactionStarted)) == 1
    assert [role for role, _text in small.provider.messages()] == [
        "system", "user", "assistant", "user",
    ]  # fmt: skip


async def test_input_that_comes_during_a_summary_waits_for_the_next_boundary(small: World) -> None:
    """B-22: the rebuilt turn promotes nothing."""
    await small.prompt("msg_1", LONG)

    async def summary() -> Response:
        await small.write(admitted("msg_3", "steer"))
        return text_reply("SUMMARY")

    small.provider.replies.append(summary)
    await small.prompt("msg_2", LONG)

    types = await small.types()
    ended = types.index("compaction.ended")
    assert types.index("attempt.dispatched", ended) < types.index("prompt.promoted", ended)
    assert "steer" not in json.dumps(small.provider.requests[-2])
    assert small.provider.messages()[-1] == ("user", "steer")


async def test_a_blocked_baseline_keeps_the_old_one(small: World) -> None:
    """F-39: the next boundary that can observe every source replaces it."""
    await small.prompt("msg_1", LONG)
    small.observe(UnavailableSource(key="core/date", reason="hung"))
    small.provider.replies.append(text_reply("SUMMARY"))
    await small.prompt("msg_2", LONG)
    blocked = (await small.session()).epoch

    small.observe(DATE)
    await small.prompt("msg_3", "Where to?")

    epoch = (await small.session()).epoch
    assert blocked is not None
    assert epoch is not None
    assert (await small.types()).count("context.replaced") == 1
    assert epoch.seq > blocked.seq
    assert (await small.types())[epoch.seq - 1] == "compaction.ended"


async def test_compactions_are_counted(small: World) -> None:
    def count(cause: str, outcome: str) -> float:
        labels = {"cause": cause, "outcome": outcome}
        return REGISTRY.get_sample_value("fairlead_compactions_total", labels) or 0.0

    before = count("auto", "ended"), count("manual", "nothing")
    await small.write(CompactionRequested())
    await small.drain()
    await small.prompt("msg_1", LONG)
    small.provider.replies.append(text_reply("SUMMARY"))
    await small.prompt("msg_2", LONG)

    assert count("auto", "ended") == before[0] + 1
    assert count("manual", "nothing") == before[1] + 1


async def test_an_epoch_that_a_compaction_commits_is_counted(small: World) -> None:
    """F-50: in whichever commit the epoch begins."""
    before = EPOCHS._value.get()  # noqa: SLF001
    await small.prompt("msg_1", LONG)
    await small.write(SessionMoved(location=LocationRef(directory="/else")))
    small.provider.replies.append(text_reply("SUMMARY"))
    await small.prompt("msg_2", LONG)

    events = await small.events()
    started = events.index(events_of(events, CompactionStarted)[0])
    initialised = [at for at, item in enumerate(events) if isinstance(item, ContextInitialised)]
    replaced = [item for item in events if isinstance(item, ContextReplaced)]
    assert len(initialised) == 2
    assert initialised[-1] < started
    assert EPOCHS._value.get() - before == len(initialised) + len(replaced)  # noqa: SLF001
