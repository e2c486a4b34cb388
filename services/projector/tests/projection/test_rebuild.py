"""The read models can be dropped and made again, row for row. BEHAVIOUR H-22."""

from typing import TYPE_CHECKING

import pytest

from fairlead_eventlog.memory.dead_letters import MemoryDeadLetters
from fairlead_projector import database
from fairlead_projector.migrations import migrate
from fairlead_projector.projection.rebuild import RebuildProgress, digest, rebuild
from fairlead_projector.projection.shard import ShardWriter
from fairlead_projector.projection.store import ShardStore
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
from fairlead_schema.subjects import Address
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
    from services.projector.tests.conftest import Given, Projection

pytestmark = pytest.mark.integration

MODEL = ModelRef(id="fast", provider_id="acme")
PROMPT = Prompt(text="hello")
STEP_ENDED = StepEnded(
    assistant_message_id="msg_a", finish="stop", cost=1.0, tokens=Tokens(input=1, output=1)
)
SESSIONS = [Address("default", f"ses_{n}") for n in range(12)]


def write_log(given: "Given") -> None:
    """Sessions with turns, tools, an abandoned step, a revert, a cancelled input and a broken commit."""
    created = SessionCreated(title="t", project_id="p", location=LocationRef(directory="/w"))
    for at in SESSIONS:
        given.commit(at, created)
    for turn in range(4):
        for at in SESSIONS:
            write_turn(given, at, turn)
    for at in SESSIONS[:4]:
        given.commit(at, RevertCommitted(message_id="msg_u1"))
        given.commit(at, StepStarted(assistant_message_id="msg_z", agent="build", model=MODEL))
    given.raw(SESSIONS[5], b"{}")
    given.commit(SESSIONS[5], AgentSwitched(message_id="msg_late", agent="plan"))


def write_turn(given: "Given", at: Address, turn: int) -> None:
    user, assistant, local = f"msg_u{turn}", f"msg_a{turn}", Executor()
    given.commit(at, PromptAdmitted(message_id=user, prompt=PROMPT, delivery="steer"))
    given.commit(at, PromptAdmitted(message_id=f"{user}x", prompt=PROMPT, delivery="queue"))
    given.commit(
        at,
        ExecutionClaimed(generation=turn + 1, runner="run_1"),
        PromptPromoted(message_id=user, prompt=PROMPT, created=turn),
        StepStarted(assistant_message_id=assistant, agent="build", model=MODEL),
        TextStarted(assistant_message_id=assistant, text_id="t"),
    )
    given.commit(at, ShellStarted(message_id=f"msg_s{turn}", call_id="s", command="ls"))
    given.commit(at, TextEnded(assistant_message_id=assistant, text_id="t", text="hi"))
    given.commit(
        at,
        ToolInputStarted(assistant_message_id=assistant, call_id="c", name="read"),
        ToolCalled(
            assistant_message_id=assistant, call_id="c", tool="read", input={}, provider=local
        ),
    )
    if turn % 2:
        tokens = Tokens(input=3, output=4)
        given.commit(
            at,
            StepEnded(assistant_message_id=assistant, finish="stop", cost=0.1, tokens=tokens),
            ExecutionReleased(generation=turn + 1, reason="parked"),
        )
    given.commit(at, ShellEnded(message_id=f"msg_s{turn}", call_id="s", output="a"))
    given.commit(
        at,
        ToolSucceeded(
            assistant_message_id=f"msg_a{max(0, turn - 1)}",
            call_id="c",
            structured={"n": turn},
            content=(TextContent(text="x"),),
            provider=local,
        ),
    )
    given.commit(at, InputCancelled(message_id=f"{user}x"))


async def apply_all(given: "Given", dsn: str, *, size: int, cold: bool) -> None:
    async with await database.connect(dsn) as connection:
        await migrate(connection)
        for shard, entries in enumerate(given.log.entries):
            store = ShardStore(connection, shard)
            writer = ShardWriter(store, given.eventlog, shard)
            await writer.load_checkpoint()
            for start in range(0, len(entries), size):
                if cold:
                    store.forget()
                await writer.write(entries[start : start + size])


@pytest.mark.parametrize(("size", "cold"), [(1, False), (1, True), (3, False), (7, True)])
async def test_rows_do_not_depend_on_how_the_log_was_cut_into_batches(
    given: "Given", dsn: str, *, size: int, cold: bool
) -> None:
    write_log(given)
    await apply_all(given, dsn, size=500, cold=False)
    expected = await digest(dsn)

    await rebuild(dsn, given.eventlog, progress=lambda _progress: None)
    assert await digest(dsn) == expected
    async with await database.connect(dsn) as connection:
        await connection.execute("DROP SCHEMA projection, read CASCADE")
        await connection.execute("DELETE FROM public.fairlead_migration")
    await apply_all(given, dsn, size=size, cold=cold)

    assert await digest(dsn) == expected


OPEN_TURN = (CREATED, ADMITTED, CLAIMED, PROMOTED, DISPATCHED, STARTED)
PARKED_CALLS = (*call_events("c1"), *call_events("c2"), ask_permission(), release("parked"))
FINISHED_CALLS = (permit(), settlement("c2"), CLAIMED, settlement("c1"))
SECOND_TURN = (DISPATCHED, STEP_ENDED, release("over-budget"), BudgetSet(cost=5.0))
INTERRUPTED_TURN = (CLAIMED, DISPATCHED, InterruptRequested(), release("interrupted"))
EXECUTION_LOG = (*OPEN_TURN, *PARKED_CALLS, *FINISHED_CALLS, *SECOND_TURN, *INTERRUPTED_TURN)


async def test_a_row_of_an_earlier_release_follows_later_events_and_is_rebuilt_alike(
    given: "Given", dsn: str
) -> None:
    """Session n loses its execution after event n, as a row has none that an earlier release wrote."""
    sessions = [Address("default", f"ses_{number:02}") for number in range(len(EXECUTION_LOG) - 1)]
    for number, event in enumerate(EXECUTION_LOG):
        for at in sessions:
            given.commit(at, event)
        await apply_all(given, dsn, size=500, cold=True)
        async with await database.connect(dsn) as connection:
            await connection.execute(
                "UPDATE projection.session SET execution = NULL WHERE session_id = %s",
                (f"ses_{number:02}",),
            )

    followed = await digest(dsn)
    async with await database.connect(dsn) as connection:
        cursor = await connection.execute(
            "SELECT DISTINCT owed, work_requested, waiting, interrupted, rested, wake_at, execution"
            "  FROM projection.session"
        )
        assert len(await cursor.fetchall()) == 1
    await rebuild(dsn, given.eventlog, progress=lambda _progress: None)
    assert await digest(dsn) == followed


async def test_a_rebuild_beside_a_running_projector_gives_the_same_rows(
    given: "Given", projection: "Projection"
) -> None:
    write_log(given)
    reports: list[RebuildProgress] = []
    async with projection.run():
        await projection.wait_until(projection.is_caught_up)
        before = await digest(projection.dsn)

        await rebuild(projection.dsn, given.eventlog, progress=reports.append)
        assert await digest(projection.dsn) == before

        for at in SESSIONS[6:]:
            await given.append(at, AgentSwitched(message_id="msg_more", agent="plan"))
        await projection.wait_until(projection.is_caught_up)
        after = await digest(projection.dsn)

    assert isinstance(given.eventlog.dead_letters, MemoryDeadLetters)
    letters = list(given.eventlog.dead_letters.letters)
    await rebuild(projection.dsn, given.eventlog, progress=reports.append)
    assert await digest(projection.dsn) == after != before
    assert reports[-1].applied == reports[-1].total == sum(map(len, given.log.entries))
    # A rebuild stores no dead letters. A projector that it fences may store its letter again.
    assert given.eventlog.dead_letters.letters == letters
    assert len(set(letters)) == 1
