"""The parts that the moves of one drain share."""

from dataclasses import dataclass

from fairlead_runner.calls.sender import CallSender
from fairlead_runner.drain.event_writer import EventWriter
from fairlead_runner.drain.log_waiter import LogWaiter
from fairlead_runner.drain.move_planner import MovePlanner
from fairlead_runner.drain.ownership import Ownership
from fairlead_runner.drain.staged_writer import StagedWriter
from fairlead_runner.runner_context import RunnerContext


@dataclass(frozen=True, slots=True)
class DrainContext:
    """One drain's session, and the parts that plan, wait, own and send for the drain."""

    runner: RunnerContext
    writer: StagedWriter
    planner: MovePlanner
    waiter: LogWaiter
    ownership: Ownership
    calls: CallSender

    def event_writer(self, generation: int) -> EventWriter:
        """A writer for facts of one ownership. It sends each call as soon as the call is durable."""
        return EventWriter(self.writer, self.runner.runner, generation, self.calls.send_new)

    def log_fields(self, **fields: object) -> dict[str, object]:
        """The fields of a log line about the session."""
        return {"session_id": self.writer.at.session_id, **fields}


def open_drain(context: RunnerContext, writer: StagedWriter) -> DrainContext:
    """The parts of a new drain."""
    waiter = LogWaiter(writer)
    return DrainContext(
        runner=context,
        writer=writer,
        planner=MovePlanner(context, writer),
        waiter=waiter,
        ownership=Ownership(context, writer, waiter),
        calls=CallSender(context, writer),
    )
