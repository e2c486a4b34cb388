"""Writes the answer to an ask, and informs the runner that continues."""

from typing import Final

from fairlead_ingest.command_context import CommandContext, CommandDecider, Committed, Refusal
from fairlead_ingest.verbs.profile.restrictions import if_session_allowed
from fairlead_ingest.verbs.sessions import change, inform_runner, sequence_answer
from fairlead_schema.commands.session import SeqReached
from fairlead_schema.subjects import Address

PLATFORM: Final = "service:platform"
"""Who answers if a service of the platform names nobody: every answer has a principal."""


async def answer_ask(
    context: CommandContext, at: Address, decide: CommandDecider[Refusal]
) -> SeqReached | Refusal:
    """Commit the answer, nudge the owner, and wake a runner if the session has work.

    A repeated answer wakes the session again, because the first caller may have died before its
    wake.
    """
    outcome = await change(context, at, if_session_allowed(context, decide), by=PLATFORM)
    if not isinstance(outcome, Committed):
        return outcome
    await inform_runner(context, at, outcome.session)
    return sequence_answer(outcome.session)
