"""Pruning: requests show large outputs of old tool calls as references. The transcript keeps them.

Pruning breaks the prefix that a provider may have cached. Therefore it is one durable event, at most
once between two compactions, and later requests stay the same byte for byte.
"""

from pydantic_core import to_json

from fairlead_schema.events import ContextPruned
from fairlead_schema.message import AssistantMessage, Content, Message, ToolBlock
from fairlead_schema.tools.content import CompletedCall, FailedCall, TextContent
from fairlead_session.hosted.results import is_hosted, shorten_result
from fairlead_session.state.model_requests import PruneCutoff
from fairlead_session.state.session import Session
from fairlead_session.state.transcript import TranscriptLine
from fairlead_session.turn.history import lines


def request_history(session: Session) -> tuple[Message, ...]:
    """Session history in the form that a request sends."""
    return tuple(prune_message(line, session.requests.prune_cutoff) for line in lines(session))


def prune(session: Session, *, turns: int, over_bytes: int) -> ContextPruned | None:
    """Prune what is older than so many turns; None without anything to prune, or if it was done."""
    if turns <= 0 or session.requests.prune_cutoff is not None:
        return None
    answers = [line for line in lines(session) if isinstance(line.message, AssistantMessage)]
    if len(answers) <= turns:
        return None
    cut = PruneCutoff(answers[-turns - 1].seq, over_bytes, hosted=True)
    if all(prune_message(line, cut) == line.message for line in answers[:-turns]):
        return None
    return ContextPruned(through_seq=cut.through_seq, over_bytes=over_bytes, hosted=True)


def prune_message(line: TranscriptLine, cut: PruneCutoff | None) -> Message:
    """The message of a line in the form that a request sends."""
    message = line.message
    if cut is None or line.seq > cut.through_seq or not isinstance(message, AssistantMessage):
        return message
    content = tuple(_block(block, cut) for block in message.content)
    return (
        message if content == message.content else message.model_copy(update={"content": content})
    )


def _block(block: Content, cut: PruneCutoff) -> Content:
    """The block in the form that a request sends. The tables of hosted results say which of them shrink."""
    if not isinstance(block, ToolBlock):
        return block
    if is_hosted(block):
        return shorten_result(block, cut.over_bytes, _note) if cut.hosted else block
    state = block.state
    if not isinstance(state, CompletedCall | FailedCall):
        return block
    size = len(to_json([item.wire() for item in state.content] or state.structured))
    if size <= cut.over_bytes:
        return block
    paths = state.output_paths if isinstance(state, CompletedCall) else None
    note = (TextContent(text=_note(size, paths or ())),)
    update = {"content": note, "structured": {}}
    return block.model_copy(update={"state": state.model_copy(update=update)})


def _note(size: int, paths: tuple[str, ...] = ()) -> str:
    where = f" The whole output is in {', '.join(paths)}." if paths else ""
    return f"[An old output of {size} bytes was left out here.{where}]"
