"""`session.create`: one session per id, and an answer with its present state."""

import asyncio
import re

import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_ingest.command_context import CommandContext
from fairlead_ingest.verbs.input.prompt import prompt
from fairlead_ingest.verbs.profile.create import create
from fairlead_ingest.verbs.profile.delete import delete
from fairlead_schema.catalog import ModelRef
from fairlead_schema.commands.session import SessionCommand
from fairlead_schema.errors import Conflict, InvalidRequest, ProviderNotFound, SessionNotFound
from fairlead_schema.events import AgentSwitched, ModelSwitched, SessionCreated, SessionPurged
from fairlead_schema.location import LocationRef
from services.ingest.tests.conftest import (
    AT,
    append_events,
    create_command,
    create_session,
    events,
    prompt_command,
    settings,
    wakes,
)

SLOW = ModelRef(provider_id="acme", id="slow")


async def test_without_an_id_every_create_makes_a_session(context: CommandContext) -> None:
    """A-01: two calls give two sessions."""
    first = await create(context, "default", create_command())
    second = await create(context, "default", create_command())

    assert first.id != second.id
    assert first.id.startswith("ses_")


async def test_a_known_id_gives_the_stored_session_and_writes_nothing(
    context: CommandContext, eventlog: EventLog
) -> None:
    """A-02, A-03: a different location, agent or model is no conflict."""
    first = await create(context, "default", create_command(id="ses_1", agent="plan"))

    again = await create(
        context,
        "default",
        create_command(
            id="ses_1",
            agent="nobody",
            model={"providerID": "unknown", "id": "x"},
            location={"directory": "/else"},
        ),
    )

    assert again == first
    assert [type(event) for event in await events(eventlog)] == [SessionCreated]


async def test_concurrent_creates_of_one_id_converge(eventlog: EventLog) -> None:
    """A-04: the loser of the race answers with the session that the winner wrote."""
    contexts = [CommandContext(eventlog, settings()) for _ in range(3)]
    agents = ("build", "plan", "build")

    sessions = await asyncio.gather(
        *(
            create(context, "default", create_command(id="ses_1", agent=agent))
            for context, agent in zip(contexts, agents, strict=True)
        )
    )

    assert sessions[0] == sessions[1] == sessions[2]
    assert len(await events(eventlog)) == 1


async def test_a_repeated_create_shows_later_changes(
    context: CommandContext, eventlog: EventLog
) -> None:
    """A-05: the answer shows the present session, not its first receipt."""
    await create_session(context)
    await append_events(
        eventlog,
        AgentSwitched(message_id="msg_a", agent="plan"),
        ModelSwitched(message_id="msg_m", model=SLOW),
    )

    session = await create(context, "default", create_command(id="ses_1"))

    assert (session.agent, session.model) == (
        "plan",
        SLOW.model_copy(update={"variant": "default"}),
    )


async def test_everything_given_is_stored_as_given(context: CommandContext) -> None:
    """A-09: ingest stores the agent, the model with its variant, the workspace and the parent."""
    model = ModelRef(provider_id="acme", id="fast", variant="high")

    session = await create(
        context,
        "default",
        create_command(
            id="ses_1",
            agent="plan",
            model=model.wire(),
            location={"directory": "/w", "workspaceID": "wrk_1"},
            parentID="ses_0",
        ),
    )

    assert (session.agent, session.model, session.parent_id) == ("plan", model, "ses_0")
    assert session.location == LocationRef(directory="/w", workspace_id="wrk_1")


async def test_a_new_session_starts_at_nothing(context: CommandContext, eventlog: EventLog) -> None:
    """A-07, A-08: it has a dated title, zero cost and one event, and no wake."""
    session = await create(context, "default", create_command(id="ses_1"))

    stamp = r"New session - \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
    assert re.fullmatch(stamp, session.title)
    assert (session.cost, session.tokens.input) == (0, 0)
    assert (await eventlog.log.head(AT)).seq == 1
    assert wakes(eventlog) == []


async def test_sessions_of_two_tenants_are_two_sessions(context: CommandContext) -> None:
    """A-02: an id means something only inside its tenant."""
    ours = await create(context, "ours", create_command(id="ses_1", agent="plan"))
    theirs = await create(context, "theirs", create_command(id="ses_1"))

    assert (ours.agent, theirs.agent) == ("plan", "build")


async def test_an_unknown_agent_is_refused(context: CommandContext, eventlog: EventLog) -> None:
    """A-09: a session that could never run is not written."""
    with pytest.raises(InvalidRequest) as refusal:
        await create(context, "default", create_command(id="ses_1", agent="nobody"))

    assert refusal.value.body.field == "agent"
    assert await events(eventlog) == []


async def test_an_unknown_provider_or_model_is_refused(
    context: CommandContext, eventlog: EventLog
) -> None:
    """A-09: each case has an error of its own."""
    unknown_provider = {"providerID": "nowhere", "id": "fast"}
    unknown_model = {"providerID": "acme", "id": "unheard"}

    with pytest.raises(ProviderNotFound) as provider:
        await create(context, "default", create_command(id="ses_1", model=unknown_provider))
    with pytest.raises(InvalidRequest) as model:
        await create(context, "default", create_command(id="ses_1", model=unknown_model))

    assert provider.value.body.provider_id == "nowhere"
    assert model.value.body.field == "model"
    assert await events(eventlog) == []


async def test_an_unknown_variant_is_refused(context: CommandContext, eventlog: EventLog) -> None:
    """O-31: the refusal precedes any write; `default` is always known."""
    low = {"providerID": "acme", "id": "fast", "variant": "low"}

    with pytest.raises(InvalidRequest, match="acme/fast: low") as refusal:
        await create(context, "default", create_command(id="ses_1", model=low))

    assert refusal.value.body.field == "model.variant"
    assert await events(eventlog) == []
    await create(
        context, "default", create_command(id="ses_1", model={**low, "variant": "default"})
    )


async def test_a_purged_id_is_used_up(context: CommandContext, eventlog: EventLog) -> None:
    """H-29: nobody can write under the id of a purged session, or create it again."""
    await create_session(context)
    await prompt(context, "default", prompt_command(id="msg_1", resume=False))

    await delete(context, "default", SessionCommand(session_id="ses_1"))

    with pytest.raises(Conflict, match="purged"):
        await create(context, "default", create_command(id="ses_1"))
    with pytest.raises(SessionNotFound):
        await prompt(context, "default", prompt_command())
    assert (await events(eventlog))[-1] == SessionPurged()


async def test_a_session_may_have_a_time_zone_of_its_own(
    context: CommandContext, eventlog: EventLog
) -> None:
    """F-23: the model of the session sees the date of that zone."""
    await create(context, "default", create_command(id=AT.session_id, timezone="Europe/Oslo"))

    (event,) = await events(eventlog)
    assert isinstance(event, SessionCreated)
    assert event.timezone == "Europe/Oslo"


@pytest.mark.parametrize("zone", ["Nowhere/Atlantis", "../../etc/passwd", "/etc/passwd", "Europe"])
async def test_a_time_zone_that_is_none_is_refused(context: CommandContext, zone: str) -> None:
    """F-23: the refusal names the field, and nothing is written."""
    with pytest.raises(InvalidRequest) as refusal:
        await create(context, "default", create_command(timezone=zone))

    assert refusal.value.body.field == "timezone"
