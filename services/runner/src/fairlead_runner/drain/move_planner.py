"""Asks the core for the next move, with the limits that hold now."""

from fairlead_runner.drain.staged_writer import StagedWriter
from fairlead_runner.runner_context import RunnerContext
from fairlead_runner.subagents import count_child_usage
from fairlead_schema.ids import MessageId
from fairlead_session.next_move import Move, next_move


class MovePlanner:
    """Plans the moves of one drain."""

    def __init__(self, context: RunnerContext, writer: StagedWriter) -> None:
        self._context = context
        self._writer = writer
        self.opening: MessageId | None = None
        """The queued input that the drain was about to promote, in case its commit fails."""

    async def next_move(self) -> Move:
        """Stage the usage of sub-agents, then decide."""
        context, writer = self._context, self._writer
        writer.stage(*await count_child_usage(context.session_writer, writer.at, writer.session))
        usage = await context.tenant_usage.load(writer.at.tenant)
        limits = context.settings.limits(writer.session, usage)
        return next_move(writer.session, limits, opening=self.opening)
