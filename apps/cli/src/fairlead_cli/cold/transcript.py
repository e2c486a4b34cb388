"""The transcript of an exported session as text, without a server."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from fairlead_cli.errors import CommandError
from fairlead_cli.exports.export_file import verify_file
from fairlead_schema.events import RevertCommitted
from fairlead_schema.ids import MessageId, SessionId
from fairlead_schema.message import (
    AgentSwitchedMessage,
    AssistantMessage,
    CompactionMessage,
    Message,
    ModelSwitchedMessage,
    ReasoningBlock,
    ShellMessage,
    TextBlock,
)
from fairlead_schema.record import Recorded, decode
from fairlead_schema.transfer.lines import ExportedCommit, SessionBegun
from fairlead_session.fold.messages import revise
from fairlead_session.transfer.reader import file_lines, trusted_items


class _Transcript:
    """All messages of one session, in the order of their first events."""

    def __init__(self, session_id: SessionId) -> None:
        self.session_id = session_id
        self.messages: dict[MessageId, Message] = {}
        self._seq = 0

    def find(self, message_id: MessageId) -> Message | None:
        return self.messages.get(message_id)

    def open_assistant(self) -> AssistantMessage | None:
        newest = next(
            (one for one in reversed(self.messages.values()) if isinstance(one, AssistantMessage)),
            None,
        )
        return newest if newest is not None and newest.time.completed is None else None

    def add(self, recorded: Recorded) -> None:
        """Apply the next event. An exact repeat of an earlier one changes nothing."""
        if recorded.seq <= self._seq:
            return
        self._seq = recorded.seq
        event = recorded.event
        if isinstance(event, RevertCommitted):
            self._revert(event.message_id, before=event.before is True)
        for message in revise(self.session_id, recorded, self):
            self.messages[message.id] = message

    def _revert(self, boundary: MessageId, *, before: bool) -> None:
        """Remove what came after the boundary of a revert, or the boundary with it."""
        ids = list(self.messages)
        if boundary in self.messages:
            for id_ in ids[ids.index(boundary) + (0 if before else 1) :]:
                del self.messages[id_]


def read_transcripts(path: Path) -> Iterator[tuple[SessionId, list[Message]]]:
    """The messages of each session of a verified file. Raises CommandError."""
    verify_file(path)
    transcripts: list[_Transcript] = []
    try:
        with path.open("rb") as file:
            for item in trusted_items(file_lines(file)):
                if isinstance(item, SessionBegun):
                    transcripts.append(_Transcript(item.begin))
                elif isinstance(item, ExportedCommit):
                    for recorded in decode(item.payload).events:
                        transcripts[-1].add(recorded)
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}") from error
    for transcript in transcripts:
        yield transcript.session_id, list(transcript.messages.values())


def describe_messages(messages: Iterable[Message]) -> Iterator[str]:
    """Lines of text for people."""
    for message in messages:
        created = datetime.fromtimestamp(message.time.created / 1000, UTC)
        yield f"[{created:%Y-%m-%d %H:%M:%S}] {message.type}"
        for part in _parts(message):
            yield from (f"  {line}" for line in part.splitlines())
        yield ""


def _parts(message: Message) -> Iterator[str]:
    match message:
        case AssistantMessage():
            for block in message.content:
                if isinstance(block, TextBlock):
                    yield block.text
                elif isinstance(block, ReasoningBlock):
                    yield f"(thinks) {block.text}"
                else:
                    yield f"(calls {block.name}: {block.state.status})"
            if message.error is not None:
                yield f"(failed: {message.error.message})"
        case ShellMessage():
            yield f"$ {message.command}"
            yield message.output
        case CompactionMessage():
            yield message.summary
        case AgentSwitchedMessage():
            yield message.agent
        case ModelSwitchedMessage():
            yield f"{message.model.provider_id}/{message.model.id}"
        case _:
            yield message.text
