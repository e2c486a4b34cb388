"""A rebuild drops the read models and gives the same rows again. BEHAVIOUR H-22."""

from contextlib import nullcontext
from typing import TYPE_CHECKING

import pytest

from fairlead_eventlog.memory.dead_letters import MemoryDeadLetters
from fairlead_projector import database
from fairlead_projector.migrations import migrate
from fairlead_projector.projection.group.held_shard import HeldShard
from fairlead_projector.projection.group.writer import GroupWriter
from fairlead_projector.projection.rebuild import RebuildProgress, digest, rebuild
from fairlead_projector.projection.store import TableStore
from fairlead_schema.catalog import ModelRef, Tokens
from fairlead_schema.events import (
    AgentSwitched,
    BudgetSet,
    ExecutionClaimed,
    ExecutionReleased,
    InputCancelled,
    InterruptRequested,
    PromptAdmitted,
    PromptPromoted,
    RevertCommitted,
    SessionCreated,
    ShellEnded,
    ShellStarted,
    StepEnded,
    StepStarted,
    TextEnded,
    TextStarted,
    ToolCalled,
    ToolInputStarted,
    ToolSucceeded,
)
from fairlead_schema.location import LocationRef
from fairlead_schema.prompt import Prompt
from fairlead_schema.subjects import SHARDS, Address
from fairlead_schema.tools.content import Executor, TextContent
from services.projector.tests.projection.test_asks import ask_permission, permit
from services.projector.tests.projection.test_session_row import (
    ADMITTED,
    CLAIMED,
    CREATED,
    DISPATCHED,
    PROMOTED,
    STARTED,
    call_events,
    release,
    settlement,
)

if TYPE_CHECKING:
    from services.projector.tests.conftest import LogBuilder, Projection

pytestmark = pytest.mark.integration

MODEL = ModelRef(id="fast", provider_id="acme")
PROMPT = Prompt(text="hello")
STEP_ENDED = StepEnded(
    assistant_message_id="msg_a", finish="stop", cost=1.0, tokens=Tokens(input=1, output=1)
)
SESSIONS = [Address("default", f"ses_{n}") for n in range(12)]


def write_log(log_builder: "LogBuilder") -> None:
    """Sessions with turns, tools, an abandoned step, a revert, a cancelled input and a broken commit."""
    creation = SessionCreated(title="t", project_id="p", location=LocationRef(directory="/w"))
    for at in SESSIONS:
        log_builder.commit(at, creation)
    for turn in range(4):
        for at in SESSIONS:
            write_turn(log_builder, at, turn)
    for at in SESSIONS[:4]:
        log_builder.commit(at, RevertCommitted(message_id="msg_u1"))
        log_builder.commit(
            at, StepStarted(assistant_message_id="msg_z", agent="build", model=MODEL)
        )
    log_builder.raw(SESSIONS[5], b"{}")
    log_builder.commit(SESSIONS[5], AgentSwitched(message_id="msg_late", agent="plan"))


def write_turn(log_builder: "LogBuilder", at: Address, turn: int) -> None:
    user, assistant, local = f"msg_u{turn}", f"msg_a{turn}", Executor()
    log_builder.commit(at, PromptAdmitted(message_id=user, prompt=PROMPT, delivery="steer"))
    log_builder.commit(at, PromptAdmitted(message_id=f"{user}x", prompt=PROMPT, delivery="queue"))
    log_builder.commit(
        at,
        ExecutionClaimed(generation=turn + 1, runner="run_1"),
        PromptPromoted(message_id=user, prompt=PROMPT, created=turn),
        StepStarted(assistant_message_id=assistant, agent="build", model=MODEL),
        TextStarted(assistant_message_id=assistant, text_id="t"),
    )
    log_builder.commit(at, ShellStarted(message_id=f"msg_s{turn}", call_id="s", command="ls"))
    log_builder.commit(at, TextEnded(assistant_message_id=assistant, text_id="t", text="hi"))
    log_builder.commit(
        at,
        ToolInputStarted(assistant_message_id=assistant, call_id="c", name="read"),
        ToolCalled(
            assistant_message_id=assistant, call_id="c", tool="read", input={}, provider=local
        ),
    )
    if turn % 2:
        tokens = Tokens(input=3, output=4)
        log_builder.commit(
            at,
            StepEnded(assistant_message_id=assistant, finish="stop", cost=0.1, tokens=tokens),
            ExecutionReleased(generation=turn + 1, reason="parked"),
        )
    log_builder.commit(at, ShellEnded(message_id=f"msg_s{turn}", call_id="s", output="a"))
    log_builder.commit(
        at,
        ToolSucceeded(
            assistant_message_id=f"msg_a{max(0, turn - 1)}",
            call_id="c",
            structured={"n": turn},
            content=(TextContent(text="x"),),
            provider=local,
        ),
    )
    log_builder.commit(at, InputCancelled(message_id=f"{user}x"))


async def apply_all(log_builder: "LogBuilder", dsn: str, *, size: int, cold: bool) -> None:
    async with await database.connect(dsn) as connection:
        await migrate(connection)
        store = TableStore(connection)
        writer = GroupWriter(store, log_builder.eventlog)
        shards = [HeldShard(log_builder.eventlog, shard) for shard in range(SHARDS)]
        for held in shards:
            await held.load_checkpoint(lambda: nullcontext(store))
        for start in range(0, max(map(len, log_builder.log.entries)), size):
            if cold:
                store.forget()
            parts = [entries[start : start + size] for entries in log_builder.log.entries]
            assert await writer.write(dict(zip(shards, parts, strict=True))) == {}


@pytest.mark.parametrize(("size", "cold"), [(1, False), (1, True), (3, False), (7, True)])
async def test_rows_do_not_depend_on_how_the_log_was_cut_into_batches(
    log_builder: "LogBuilder", dsn: str, *, size: int, cold: bool
) -> None:
    write_log(log_builder)
    await apply_all(log_builder, dsn, size=500, cold=False)
    rows_digest = await digest(dsn)

    await rebuild(dsn, log_builder.eventlog, progress=lambda _progress: None)
    assert await digest(dsn) == rows_digest
    async with await database.connect(dsn) as connection:
        await connection.execute("DROP SCHEMA projection, read CASCADE")
        await connection.execute("DELETE FROM public.fairlead_migration")
    await apply_all(log_builder, dsn, size=size, cold=cold)

    assert await digest(dsn) == rows_digest


def claim(generation: int) -> ExecutionClaimed:
    return ExecutionClaimed(generation=generation, runner="run_1")


OPEN_TURN = (CREATED, ADMITTED, CLAIMED, PROMOTED, DISPATCHED, STARTED)
PARKED_CALLS = (*call_events("c1"), *call_events("c2"), ask_permission(), release("parked"))
FINISHED_CALLS = (permit(), settlement("c2"), claim(2), settlement("c1"))
SECOND_TURN = (DISPATCHED, STEP_ENDED, release("over-budget"), BudgetSet(cost=5.0))
INTERRUPTED_TURN = (claim(3), DISPATCHED, InterruptRequested(), release("interrupted"))
EXECUTION_LOG = (*OPEN_TURN, *PARKED_CALLS, *FINISHED_CALLS, *SECOND_TURN, *INTERRUPTED_TURN)


async def test_a_row_of_an_earlier_release_follows_later_events_and_is_rebuilt_alike(
    log_builder: "LogBuilder", dsn: str
) -> None:
    """Session n loses its execution column after event n, like a row of an earlier release."""
    sessions = [Address("default", f"ses_{number:02}") for number in range(len(EXECUTION_LOG) - 1)]
    for number, event in enumerate(EXECUTION_LOG):
        for at in sessions:
            log_builder.commit(at, event)
        await apply_all(log_builder, dsn, size=500, cold=True)
        async with await database.connect(dsn) as connection:
            await connection.execute(
                "UPDATE projection.session SET execution = NULL WHERE session_id = %s",
                (f"ses_{number:02}",),
            )

    rows_digest = await digest(dsn)
    async with await database.connect(dsn) as connection:
        cursor = await connection.execute(
            "SELECT DISTINCT owed, work_requested, waiting, interrupted, rested, wake_at, execution"
            "  FROM projection.session"
        )
        assert len(await cursor.fetchall()) == 1
    await rebuild(dsn, log_builder.eventlog, progress=lambda _progress: None)
    assert await digest(dsn) == rows_digest


async def test_a_rebuild_beside_a_running_projector_gives_the_same_rows(
    log_builder: "LogBuilder", projection: "Projection"
) -> None:
    write_log(log_builder)
    reports: list[RebuildProgress] = []
    async with projection.run():
        await projection.wait_until(projection.is_caught_up)
        before = await digest(projection.dsn)

        await rebuild(projection.dsn, log_builder.eventlog, progress=reports.append)
        assert await digest(projection.dsn) == before

        for at in SESSIONS[6:]:
            await log_builder.append(at, AgentSwitched(message_id="msg_more", agent="plan"))
        await projection.wait_until(projection.is_caught_up)
        after = await digest(projection.dsn)

    assert isinstance(log_builder.eventlog.dead_letters, MemoryDeadLetters)
    letters = list(log_builder.eventlog.dead_letters.letters)
    await rebuild(projection.dsn, log_builder.eventlog, progress=reports.append)
    assert await digest(projection.dsn) == after != before
    assert reports[-1].applied == reports[-1].total == sum(map(len, log_builder.log.entries))
    # A rebuild stores no dead letters. A projector that it fences may store its letter again.
    assert log_builder.eventlog.dead_letters.letters == letters
    assert len(set(letters)) == 1
