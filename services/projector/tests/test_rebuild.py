"""The read models can be dropped and made again, row for row. BEHAVIOUR H-22."""

from typing import TYPE_CHECKING

import pytest

from fairlead_eventlog.memory.dead_letters import MemoryDeadLetters
from fairlead_projector import database
from fairlead_projector.migrations import migrate
from fairlead_projector.projection.rebuild import Progress, digest, rebuild
from fairlead_projector.projection.shard import Writer
from fairlead_projector.projection.store import Store
from fairlead_schema.catalog import ModelRef, Tokens
from fairlead_schema.events import (
    AgentSwitched,
    ExecutionClaimed,
    ExecutionReleased,
    InputCancelled,
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

if TYPE_CHECKING:
    from services.projector.tests.conftest import Given, Projection

pytestmark = pytest.mark.integration

MODEL = ModelRef(id="fast", provider_id="acme")
PROMPT = Prompt(text="hello")
SESSIONS = [Address("default", f"ses_{n}") for n in range(12)]


def tell_a_story(given: "Given") -> None:
    """Sessions with turns, tools, an abandoned step, a revert, a cancelled input and poison."""
    created = SessionCreated(title="t", project_id="p", location=LocationRef(directory="/w"))
    for at in SESSIONS:
        given.commit(at, created)
    for turn in range(4):
        for at in SESSIONS:
            tell_a_turn(given, at, turn)
    for at in SESSIONS[:4]:
        given.commit(at, RevertCommitted(message_id="msg_u1"))
        given.commit(at, StepStarted(assistant_message_id="msg_z", agent="build", model=MODEL))
    given.raw(SESSIONS[5], b"{}")
    given.commit(SESSIONS[5], AgentSwitched(message_id="msg_late", agent="plan"))


def tell_a_turn(given: "Given", at: Address, turn: int) -> None:
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
            store = Store(connection, shard)
            writer = Writer(store, given.eventlog, shard)
            await writer.begin()
            for start in range(0, len(entries), size):
                if cold:
                    store.forget()
                await writer.write(entries[start : start + size])


@pytest.mark.parametrize(("size", "cold"), [(1, False), (1, True), (3, False), (7, True)])
async def test_rows_do_not_depend_on_how_the_log_was_cut_into_batches(
    given: "Given", dsn: str, *, size: int, cold: bool
) -> None:
    tell_a_story(given)
    await apply_all(given, dsn, size=500, cold=False)
    at_once = await digest(dsn)

    await rebuild(dsn, given.eventlog, progress=lambda _progress: None)
    assert await digest(dsn) == at_once
    async with await database.connect(dsn) as connection:
        await connection.execute("DROP SCHEMA projection, read CASCADE")
        await connection.execute("DELETE FROM public.fairlead_migration")
    await apply_all(given, dsn, size=size, cold=cold)

    assert await digest(dsn) == at_once


async def test_a_rebuild_beside_a_running_projector_gives_the_same_rows(
    given: "Given", projection: "Projection"
) -> None:
    tell_a_story(given)
    seen: list[Progress] = []
    async with projection.running():
        await projection.until(projection.arrived)
        before = await digest(projection.dsn)

        await rebuild(projection.dsn, given.eventlog, progress=seen.append)
        assert await digest(projection.dsn) == before

        for at in SESSIONS[6:]:
            await given.append(at, AgentSwitched(message_id="msg_more", agent="plan"))
        await projection.until(projection.arrived)
        after = await digest(projection.dsn)

    await rebuild(projection.dsn, given.eventlog, progress=seen.append)
    assert await digest(projection.dsn) == after != before
    assert seen[-1].applied == seen[-1].total > 0
    assert isinstance(given.eventlog.dead_letters, MemoryDeadLetters)
    assert len(given.eventlog.dead_letters.letters) <= 2
