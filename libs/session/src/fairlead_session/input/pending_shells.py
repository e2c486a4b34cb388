"""People's commands that wait for a safe boundary: which are due, how they start, how they are dropped."""

from collections.abc import Iterable

from fairlead_schema.events import SessionEvent, ShellEnded, ShellStarted
from fairlead_session.execution.recovery import INTERRUPTED_TOOL
from fairlead_session.state.inbox import PendingInput, PendingShell
from fairlead_session.state.session import Session


def due_shells(session: Session, inputs: Iterable[PendingInput]) -> tuple[PendingShell, ...]:
    """The commands that start before these inputs are promoted."""
    prompts = {item.message_id for item in inputs}
    return tuple(shell for shell in session.inbox.shells if shell.prompt_id in prompts)


def own_shells(session: Session) -> tuple[PendingShell, ...]:
    """The commands that wait for nothing but a safe boundary."""
    return tuple(shell for shell in session.inbox.shells if shell.prompt_id is None)


def pending_count(session: Session) -> int:
    """How much input waits. The commands of a prompt's templates count with their prompt."""
    return len(session.inbox.pending) + len(own_shells(session))


def start_shells(shells: Iterable[PendingShell]) -> tuple[SessionEvent, ...]:
    """Show the commands in the transcript, and open their calls."""
    return tuple(
        ShellStarted(
            message_id=shell.message_id,
            call_id=shell.call_id,
            command=shell.command,
            agent=shell.agent,
        )
        for shell in shells
    )


def drop_shells(session: Session) -> tuple[SessionEvent, ...]:
    """End the commands that an interrupt found waiting. Those of a pending prompt wait on with it."""
    return tuple(
        event
        for shell in own_shells(session)
        for event in (
            ShellStarted(message_id=shell.message_id, call_id=shell.call_id, command=shell.command),
            ShellEnded(message_id=shell.message_id, call_id=shell.call_id, output=INTERRUPTED_TOOL),
        )
    )
