"""`session.create`: create a session, or return the one that has this id."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from fairlead_ingest.command_context import ContextDep
from fairlead_ingest.existing_session import check_in_log
from fairlead_ingest.quotas import quota_error
from fairlead_ingest.verbs.profile.location import permitted_location
from fairlead_ingest.verbs.profile.pool import pool_of_new_session
from fairlead_ingest.verbs.profile.restrictions import (
    bound_budget,
    check_agent_allowed,
    check_directory_allowed,
)
from fairlead_ingest.verbs.sessions import describe
from fairlead_schema.catalog import ModelRef
from fairlead_schema.commands.session import CreateSession
from fairlead_schema.errors import Conflict, InvalidRequest, ProviderNotFound
from fairlead_schema.events import SessionCreated
from fairlead_schema.ids import TenantId
from fairlead_schema.location import project_id
from fairlead_schema.session_info import SessionInfo
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_service.config.configuration import Config
from fairlead_service.rpc.caller import current_restrictions
from fairlead_service.rpc.server import TenantParam
from fairlead_session.execution import commands
from fairlead_session.execution.commands import SessionIdUsed
from fairlead_session.execution.quota import CREATE_QUOTAS
from fairlead_session.input.prompt_title import unnamed_title
from fairlead_session.state.usage import Budget


async def create(context: ContextDep, tenant: TenantParam, command: CreateSession) -> SessionInfo:
    """Create once by id: a repeated create returns the session as it is, whatever it asks for."""
    at = Address(tenant, command.id or ids.session_id())
    known = await context.load_confirmed(at) if command.id else context.assume_new(at)
    check_in_log(known.state)
    if known.state.profile is not None:
        return describe(context, known.state)
    if (reached := await context.quotas.find_reached_quota(tenant, CREATE_QUOTAS)) is not None:
        raise quota_error(reached)
    created, limits = check_creation(context.settings.config, tenant, command)
    pool = await pool_of_new_session(context, tenant, command, created.location)
    if pool is not None:
        created = created.model_copy(update={"pool": pool})
    outcome = await context.commit(
        at, lambda current: commands.create(current, created, limits), assumed=known
    )
    if isinstance(outcome, SessionIdUsed):
        raise Conflict("The session was purged, and its id is used up", at.session_id)
    if outcome.events:
        context.quotas.add(at, outcome.session, "sessions")
    return describe(context, outcome.session)


def check_creation(
    config: Config, tenant: TenantId, command: CreateSession
) -> tuple[SessionCreated, Budget]:
    """The first event and the budget of a session that the caller may create.

    Raises InvalidRequest, ProviderNotFound, Forbidden.
    """
    created, restrictions = _created_event(config, tenant, command), current_restrictions()
    check_agent_allowed(restrictions, config.agent_name(created.agent))
    check_directory_allowed(restrictions, created.location.directory)
    return created, bound_budget(restrictions, _limits(command))


def _created_event(config: Config, tenant: TenantId, command: CreateSession) -> SessionCreated:
    check_agent(config, command.agent)
    check_model(config, command.model)
    check_timezone(command.timezone)
    location = permitted_location(config, tenant, command.location)
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return SessionCreated(
        title=unnamed_title(now),
        project_id=project_id(location.directory),
        location=location,
        agent=command.agent,
        model=command.model,
        parent_id=command.parent_id,
        timezone=command.timezone,
    )


def _limits(command: CreateSession) -> Budget:
    limits = command.budget
    return Budget() if limits is None else Budget(limits.cost, limits.tokens)


def check_timezone(timezone: str | None) -> None:
    """Refuse a time zone that this machine does not know."""
    if timezone is None:
        return
    try:
        ZoneInfo(timezone)
    except (KeyError, ValueError, OSError) as error:
        message = f"Unknown time zone: {timezone}"
        raise InvalidRequest(message, kind="Body", field="timezone") from error


def check_agent(config: Config, agent: str | None) -> None:
    """Refuse an agent that is not configured."""
    if agent is not None and agent not in config.agents:
        raise InvalidRequest(f"Unknown agent: {agent}", kind="Body", field="agent")


def check_model(config: Config, model: ModelRef | None) -> None:
    """Refuse a model or a variant that is not configured, before anything is written."""
    if model is None:
        return
    if model.provider_id not in config.provider:
        raise ProviderNotFound(model.provider_id)
    name, configured = f"{model.provider_id}/{model.id}", config.model(model)
    if configured is None:
        message = f"Unknown model: {name}{config.suggest(model)}"
        raise InvalidRequest(message, kind="Body", field="model")
    if configured.with_variant(model.variant) is None:
        raise InvalidRequest(
            f"Unknown variant of {name}: {model.variant}", kind="Body", field="model.variant"
        )
