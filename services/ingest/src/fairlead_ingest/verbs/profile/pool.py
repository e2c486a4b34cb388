"""The pool of a session: the rules choose it, or somebody names one that the rules permit."""

from fairlead_ingest.command_context import CommandContext
from fairlead_schema.commands.session import CreateSession
from fairlead_schema.errors import InvalidRequest, ServiceUnavailable
from fairlead_schema.ids import TenantId
from fairlead_schema.location import LocationRef
from fairlead_schema.subjects import Address
from fairlead_schema.tools.pool_rules import POOL_LEVEL
from fairlead_service.locations import choose_pool, permitted_pools
from fairlead_session.state.session import Session


async def pool_of_new_session(
    context: CommandContext, tenant: TenantId, command: CreateSession, location: LocationRef
) -> str | None:
    """The pool of a new session; None for the default pool. Raises ServiceUnavailable.

    A sub-agent works on the files of its parent, so it has the same pool.
    """
    if command.parent_id is not None:
        parent = (await context.load(Address(tenant, command.parent_id))).profile
        if parent is not None and parent.location.directory == location.directory:
            return parent.pool
    chosen = choose_pool(context.settings.config.pools, tenant, location.directory)
    return _name_in_log(context, chosen)


def pool_of_moved_session(
    context: CommandContext,
    tenant: TenantId,
    session: Session,
    location: LocationRef,
    named: str | None,
) -> str | None:
    """The pool after a move; None for the default pool. Raises InvalidRequest, ServiceUnavailable.

    A session that stays where it is keeps its pool, whatever the rules say now.
    """
    rules, profile = context.settings.config.pools, session.profile
    assert profile is not None, "only an existing session moves"
    if named is not None:
        check_permitted(context, tenant, location.directory, named)
        return _name_in_log(context, named)
    if profile.location.directory == location.directory:
        return profile.pool
    return _name_in_log(context, choose_pool(rules, tenant, location.directory))


def check_permitted(context: CommandContext, tenant: TenantId, directory: str, pool: str) -> None:
    """Refuse a pool that the rules do not open to a tenant's sessions in a directory."""
    permitted = permitted_pools(context.settings.config.pools, tenant, directory)
    if pool not in permitted:
        text = (
            f"Sessions in {directory} may not use the pool {pool}: the [[pool]] rules permit"
            f" {', '.join(permitted)}"
        )
        raise InvalidRequest(text, kind="Body", field="pool")


def serving_pool(context: CommandContext, stored: str | None) -> str:
    """The name of the pool that serves a session with this stored pool."""
    return stored or context.settings.config.pools.default


def _name_in_log(context: CommandContext, pool: str) -> str | None:
    """The pool as the log has it. The default pool has no name there, as in earlier releases."""
    if pool == context.settings.config.pools.default:
        return None
    if context.eventlog.status.current.level < POOL_LEVEL:
        text = (
            f"The session belongs to the pool {pool}, and an older release may still run, which knows"
            " no pools: run `fairlead provision --finalise` when it will not run again"
        )
        raise ServiceUnavailable(text, service="session.pool")
    return pool
