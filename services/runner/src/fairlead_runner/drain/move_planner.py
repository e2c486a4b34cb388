"""Asks the core for the next move, with the limits that hold now."""

from fairlead_runner.drain.staged_writer import StagedWriter
from fairlead_runner.runner_context import RunnerContext
from fairlead_runner.subagents import count_child_usage
from fairlead_schema.ids import MessageId
from fairlead_session.input.options import choose_profile
from fairlead_session.next_move import Move, next_inputs, next_move
from fairlead_session.state.session import Session


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
        limits = context.settings.limits(self._choose_profile(), usage)
        return next_move(writer.session, limits, opening=self.opening)

    def _choose_profile(self) -> Session:
        """The session with the agent of its next turn, whose steps are a limit."""
        session = self._writer.session
        if all(item.prompt.agent is None for item in session.inbox.pending):
            return choose_profile(session)
        steers_max = self._context.settings.config.runner.steers_max
        inputs = next_inputs(session, steers_max=steers_max, opening=self.opening)
        return choose_profile(session, inputs)
