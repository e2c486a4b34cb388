"""The quotas that a new prompt or a new command of a person needs."""

from fairlead_ingest.command_context import CommandContext
from fairlead_schema.commands.quota import QuotaReached
from fairlead_schema.subjects import Address
from fairlead_session.execution.quota import PROMPT_QUOTAS


async def find_prompt_quota(context: CommandContext, at: Address) -> QuotaReached | None:
    """The quota that allows no more input. The creator of a session is looked up only if it counts."""
    creator = None
    if context.quotas.limits_principals(at.tenant, PROMPT_QUOTAS):
        profile = (await context.peek(at)).profile
        creator = None if profile is None else profile.created_by
    return await context.quotas.find_reached_quota(at.tenant, PROMPT_QUOTAS, creator=creator)
