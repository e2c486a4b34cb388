"""The pool of a session: chosen by the rules, kept in the log, named only where the rules permit it."""

from typing import Any

import pytest
from pydantic import ValidationError

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.memory.eventlog import memory_eventlog
from fairlead_ingest.command_context import CommandContext
from fairlead_ingest.settings import IngestSettings, WakeTimings
from fairlead_ingest.verbs.location_files import list_files
from fairlead_ingest.verbs.profile.create import create
from fairlead_ingest.verbs.profile.move import move
from fairlead_ingest.verbs.transfer.check import check
from fairlead_ingest.verbs.transfer.fork import fork
from fairlead_schema.commands.location_files import ListFiles
from fairlead_schema.commands.session import ForkSession, MoveSession
from fairlead_schema.commands.transfer import CheckTransfer
from fairlead_schema.errors import Conflict, InvalidRequest, ReplayConflict, ServiceUnavailable
from fairlead_schema.events import ExecutionClaimed
from fairlead_schema.location import LocationRef
from fairlead_schema.record import LEVEL_NEWEST
from fairlead_schema.subjects import Address
from fairlead_service.config.configuration import Config
from services.ingest.tests.conftest import CONFIG, append_events, create_command

POOLS: list[dict[str, Any]] = [
    {"name": "guests", "tenants": ["guest"]},
    {"name": "gpu", "directories": ["/srv/gpu"]},
]


def context_of(eventlog: EventLog, pools: list[dict[str, Any]] | None = None) -> CommandContext:
    config = Config.model_validate({**CONFIG, "pool": POOLS if pools is None else pools})
    return CommandContext(eventlog, IngestSettings(config, WakeTimings()))


@pytest.fixture
async def pooled() -> CommandContext:
    """Ingest with two rules, on a log whose newest level is finalised."""
    eventlog = memory_eventlog()
    await eventlog.status.finalise(LEVEL_NEWEST)
    return context_of(eventlog)


async def new(
    context: CommandContext, directory: str, *, tenant: str = "default", **fields: object
) -> Any:  # noqa: ANN401
    command = create_command(location={"directory": directory}, **fields)
    return await create(context, tenant, command)


def to(session_id: str, **fields: object) -> MoveSession:
    return MoveSession.model_validate({"sessionID": session_id, **fields})


async def pool_of(context: CommandContext, session_id: str, tenant: str = "default") -> str | None:
    profile = (await context.load(Address(tenant, session_id))).profile
    assert profile is not None
    return profile.pool


async def test_the_first_rule_chooses_the_pool_and_the_default_pool_has_no_name(
    pooled: CommandContext,
) -> None:
    """C6"""
    assert (await new(pooled, "/srv/gpu/x")).pool == "gpu"
    assert (await new(pooled, "/work")).pool is None
    assert (await new(pooled, "/srv/gpu/x", tenant="guest")).pool == "guests"


async def test_a_move_chooses_anew_and_other_rules_move_nothing(pooled: CommandContext) -> None:
    session = (await new(pooled, "/srv/gpu")).id
    changed = context_of(pooled.eventlog, [])

    await move(changed, "default", to(session, location={"directory": "/srv/gpu"}))
    assert await pool_of(changed, session) == "gpu"
    await move(pooled, "default", to(session, location={"directory": "/work"}))
    pooled.forget(Address("default", session))
    assert await pool_of(pooled, session) is None


async def test_a_pool_is_named_only_where_the_rules_permit_it(pooled: CommandContext) -> None:
    session, bound = (
        (await new(pooled, "/srv/gpu")).id,
        (await new(pooled, "/x", tenant="guest")).id,
    )

    with pytest.raises(
        InvalidRequest, match=r"may not use the pool guests: .* permit gpu, default"
    ):
        await move(pooled, "default", to(session, pool="guests"))
    with pytest.raises(InvalidRequest, match=r"may not use the pool default: .* permit guests"):
        await move(pooled, "guest", to(bound, pool="default"))
    await move(pooled, "default", to(session, pool="default"))
    assert await pool_of(pooled, session) is None
    with pytest.raises(ValidationError, match="name a location, a pool, or both"):
        to(session)


async def test_a_move_at_rest_waits_for_a_session_that_works(pooled: CommandContext) -> None:
    session = (await new(pooled, "/srv/gpu")).id
    claimed = ExecutionClaimed(runner="run_1", generation=1)
    await append_events(pooled.eventlog, claimed, at=Address("default", session))
    pooled.forget(Address("default", session))

    with pytest.raises(Conflict, match="try again when it rests"):
        await move(pooled, "default", to(session, pool="default", atRest=True))
    assert await pool_of(pooled, session) == "gpu"


async def test_changes_stay_inside_one_pool(pooled: CommandContext) -> None:
    session = (await new(pooled, "/srv/gpu")).id
    command = to(session, location={"directory": "/work"}, moveChanges=True)

    with pytest.raises(Conflict, match="another pool"):
        await move(pooled, "default", command)


async def test_a_sub_agent_and_a_fork_have_the_pool_of_their_origin(pooled: CommandContext) -> None:
    """Both work on the files of the origin, wherever somebody moved it."""
    parent = (await new(pooled, "/srv/gpu")).id
    await move(pooled, "default", to(parent, pool="default"))

    child = await new(pooled, "/srv/gpu", parentID=parent)
    other = await new(pooled, "/srv/gpu/else", parentID=parent)
    copy = await fork(pooled, "default", ForkSession(session_id=other.id))

    assert (child.pool, other.pool, copy.pool) == (None, "gpu", "gpu")


async def test_before_the_level_is_finalised_another_pool_is_refused() -> None:
    """A13: the release before would send the calls to the wrong workers."""
    older = context_of(memory_eventlog())

    with pytest.raises(ServiceUnavailable, match=r"belongs to the pool gpu.*provision --finalise"):
        await new(older, "/srv/gpu")
    assert (await new(older, "/work")).pool is None


async def test_an_import_into_a_pool_that_is_not_permitted_is_refused(
    pooled: CommandContext,
) -> None:
    session = {"sessionID": "ses_in", "through": 3, "directory": "/work", "pool": "gpu"}
    wanted = {"origin": "elsewhere", "sessions": [session]}

    with pytest.raises(ReplayConflict, match="may not use the pool gpu"):
        await check(pooled, "default", CheckTransfer.model_validate(wanted))


async def test_files_of_a_location_are_asked_of_its_pool(pooled: CommandContext) -> None:
    with pytest.raises(ServiceUnavailable, match="No worker of the pool gpu answers: start one"):
        await list_files(pooled, "default", ListFiles(location=LocationRef(directory="/srv/gpu")))
