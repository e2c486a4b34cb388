"""Which files a revert changes back: those of each step after its boundary."""

from dataclasses import dataclass
from typing import Final

from fairlead_schema.events import RevertCleared, RevertStaged, SessionEvent
from fairlead_schema.message import AssistantMessage, ToolBlock
from fairlead_schema.session_values.revert_state import RevertedFile, RevertState
from fairlead_session.fold.transcript import boundary_seq
from fairlead_session.state.revert import FileTrees
from fairlead_session.state.session import Session

NO_SNAPSHOT: Final = (
    "a step after the message has no snapshot of the files, because git or the repository was missing "
    "or snapshots were off: send `files: false` to go back without them"
)


@dataclass(frozen=True, slots=True)
class StepSpan:
    """The files before and after one step. Without an end, the files as they are now."""

    start: str
    end: str | None


@dataclass(frozen=True, slots=True)
class RevertPlan:
    """What a restore needs: the files of each step, and what an earlier stage did."""

    steps: tuple[StepSpan, ...] = ()
    staged: FileTrees | None = None

    @property
    def changes_files(self) -> bool:
        """Whether any file may change. Otherwise only the boundary moves."""
        reverted = self.staged is not None and self.staged.target != self.staged.original
        return bool(self.steps) or reverted


def plan_revert(session: Session) -> RevertPlan | str:
    """The plan of the open request, or why there is none."""
    request = session.revert.requested
    assert request is not None, "only an open request has a plan"
    staged = session.revert.staged
    if request.action == "clear" or not request.files or request.message_id is None:
        return RevertPlan(staged=staged)
    boundary = boundary_seq(session, request.message_id, before=request.before)
    steps = tuple(
        line.message
        for line in session.transcript.lines
        if line.seq > (boundary or 0) and isinstance(line.message, AssistantMessage)
    )
    if any(_start(step) is None and _ran_calls(step) for step in steps):
        return NO_SNAPSHOT
    return RevertPlan(_spans(steps), staged)


def finish(
    session: Session, diff: str | None = None, files: tuple[RevertedFile, ...] = ()
) -> tuple[SessionEvent, ...]:
    """The event that ends the open request, after the files have changed."""
    request = session.revert.requested
    assert request is not None, "only an open request ends"
    if request.action == "clear" or request.message_id is None:
        return (RevertCleared(),)
    trees = session.revert.begun or session.revert.staged
    state = RevertState(
        message_id=request.message_id,
        before=request.before or None,
        snapshot=None if trees is None else trees.original,
        diff=diff or None,
        files=files,
    )
    return (RevertStaged(revert=state),)


def _spans(steps: tuple[AssistantMessage, ...]) -> tuple[StepSpan, ...]:
    """The steps that may have changed files. A step that was cut off ends where the next one begins."""
    starts = [start for step in steps if (start := _start(step)) is not None]
    spans, index = [], 0
    for step in steps:
        start = _start(step)
        if start is None:
            continue
        index += 1
        end = step.snapshot.end if step.snapshot else None
        if end is None and index < len(starts):
            end = starts[index]
        if _ran_calls(step) and start != end:
            spans.append(StepSpan(start, end))
    return tuple(spans)


def _start(step: AssistantMessage) -> str | None:
    return None if step.snapshot is None else step.snapshot.start


def _ran_calls(step: AssistantMessage) -> bool:
    """Whether the step made a call of its own: the provider's calls do not touch the location."""
    return any(
        isinstance(block, ToolBlock) and not (block.provider and block.provider.executed)
        for block in step.content
    )
