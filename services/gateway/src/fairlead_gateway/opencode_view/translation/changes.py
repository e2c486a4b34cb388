"""What changed in a session between two of its states, as events of the terminal client.

Two states, not single events, because each event of the client holds a whole message or a whole part.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from fairlead_gateway.opencode_view.translation.message_fields import (
    Setting,
    TextKey,
    ViewedMessage,
)
from fairlead_gateway.opencode_view.translation.messages import (
    Neighbours,
    text_part_id,
    view_message,
    with_neighbours,
)
from fairlead_gateway.opencode_view.translation.session_changes import (
    Json,
    changed_asks,
    changed_session,
    event,
    tell_deletion,
    tell_session,
    tell_status,
    tell_todos,
)
from fairlead_gateway.opencode_view.translation.sessions import (
    WithDefaults,
    pending_message,
    setting_of,
)
from fairlead_schema.delta import ReasoningDelta, TextDelta
from fairlead_schema.ids import MessageId
from fairlead_schema.message import AssistantMessage, Message, UserMessage
from fairlead_session.execution.commands import is_archived
from fairlead_session.state.inbox import PendingInput
from fairlead_session.state.session import Session

MESSAGES_MAX: Final = 100
"""The client shows no more messages than this. Older ones do not change."""


NOWHERE: Final = Neighbours()


@dataclass(frozen=True, slots=True)
class View:
    """A state of a session, and what its open texts say so far."""

    session: Session
    with_defaults: WithDefaults
    texts: Mapping[TextKey, str] = field(default_factory=dict)

    def setting(self) -> Setting:
        return setting_of(self.session, self.with_defaults, self.texts)


def changes(before: Session | None, after: View, *, is_met: bool = False) -> list[Json]:
    """The events that lead a client from one state to the next.

    A client may not know a session that the hub has just met. So whatever changed is told whole.
    """
    session = after.session
    old = None if before is None or before.profile is None else before
    if session.profile is None:
        return [] if old is None else [tell_deletion(old)]
    if is_archived(session) and old is not None and is_archived(old):
        return []
    found: list[Json] = []
    if old is None or is_met:
        found.append(tell_session(session))
    found += _removed_messages(old, after)
    found += _changed_messages(old, after, whole=is_met)
    found += changed_asks(old, session, whole=is_met)
    found += changed_session(old, session, whole=is_met)
    return found


def snapshot(view: View, *, whole: bool) -> list[Json]:
    """What a client that comes in the middle must know: the newest turn, the asks, and the status.

    Without `whole` what a client needs that prints everything it gets: the newest turn with its failure.
    A terminal shows the failure in its message, and would show it once more.
    """
    session, setting = view.session, view.setting()
    if session.profile is None:
        return []
    found = [tell_session(session)]
    shown = list(_shown_messages(session).values())
    begin = max((at for at, one in enumerate(shown) if _is_prompt(one.message)), default=0)
    for one in shown[begin:]:
        for viewed in view_message(one.message, setting, one.around):
            found += _tell_all(viewed) if whole else _whole(viewed)
    found += changed_asks(None, session)
    if whole and session.todos:
        found.append(tell_todos(session))
    found.append(tell_status(session))
    return found


def newest_prompt(session: Session) -> MessageId | None:
    """The prompt of the newest turn, pending or not."""
    prompts = [id_ for id_, one in _shown_messages(session).items() if _is_prompt(one.message)]
    return prompts[-1] if prompts else None


def fragment(session: Session, delta: TextDelta | ReasoningDelta) -> Json | None:
    """A piece of an open text; None if the log does not hold the beginning of the text yet."""
    message = session.transcript.find(delta.assistant_message_id)
    block = delta.text_id if isinstance(delta, TextDelta) else delta.reasoning_id
    if not isinstance(message, AssistantMessage):
        return None
    part = text_part_id(message, block)
    if part is None:
        return None
    properties = {
        "sessionID": session.id,
        "messageID": message.id,
        "partID": part,
        "field": "text",
        "delta": delta.delta,
    }
    return event("message.part.delta", properties)


@dataclass(frozen=True, slots=True)
class _Shown:
    source: object
    """The stored value. The same value with the same neighbours cannot have changed."""
    message: Message
    around: Neighbours


def _shown_messages(session: Session) -> dict[MessageId, _Shown]:
    """The newest messages and the pending input, oldest first."""
    lines = session.transcript.lines
    newest = [line.message for line in islice(reversed(lines), MESSAGES_MAX)]
    shown = {
        message.id: _Shown(message, message, around)
        for message, around in with_neighbours(newest[::-1])
    }
    for pending in session.inbox.pending:
        if (message_ := pending_message(pending)) is not None:
            shown.setdefault(pending.message_id, _Shown(pending, message_, NOWHERE))
    return shown


def _changed_messages(before: Session | None, after: View, *, whole: bool) -> Iterator[Json]:
    session = after.session
    if before is not None and _same_messages(before, session):
        return
    setting = after.setting()
    known = {} if before is None else _shown_messages(before)
    old_setting = setting if before is None else setting_of(before, after.with_defaults, {})
    for id_, one in _shown_messages(session).items():
        old = known.get(id_)
        if old is not None and old.source is one.source and old.around == one.around:
            continue
        views = view_message(one.message, setting, one.around)
        if old is None:
            for viewed in views:
                yield from _whole(viewed)
            continue
        old_views = view_message(old.message, old_setting, old.around)
        for viewed, old_viewed in zip(views, old_views, strict=False):
            told = _whole(viewed) if whole else _difference(old_viewed, viewed)
            yield from (*told, *_removed_parts(old_viewed, viewed))


def _same_messages(before: Session, after: Session) -> bool:
    same_lines = before.transcript.lines is after.transcript.lines
    return same_lines and before.inbox.pending is after.inbox.pending


def _whole(viewed: ViewedMessage) -> Iterator[Json]:
    yield from _tell_all(viewed)
    yield from _failure(viewed)


def _tell_all(viewed: ViewedMessage) -> Iterator[Json]:
    yield _tell_message(viewed)
    for part in viewed.parts:
        yield _tell_part(viewed, part)


def _difference(old: ViewedMessage, new: ViewedMessage) -> Iterator[Json]:
    """The parts that changed, and then the message: a completed message has all its parts."""
    known = {part["id"]: part for part in old.parts}
    for part in new.parts:
        if known.get(part["id"]) != part:
            yield _tell_part(new, part)
    if new.info != old.info:
        yield _tell_message(new)
    if "error" not in old.info:
        yield from _failure(new)


def _removed_parts(old: ViewedMessage, new: ViewedMessage) -> Iterator[Json]:
    """The client stops reading at the end of a part that it does not know, so it is told of it first."""
    kept = {part["id"] for part in new.parts}
    for part in old.parts:
        if part["id"] in kept:
            continue
        yield _tell_message(new)
        yield _tell_part(new, part)
        ids = {"messageID": part["messageID"], "partID": part["id"]}
        yield event("message.part.removed", {"sessionID": part["sessionID"], **ids})


def _failure(viewed: ViewedMessage) -> Iterator[Json]:
    if (error := viewed.info.get("error")) is not None:
        yield event("session.error", {"sessionID": viewed.info["sessionID"], "error": error})


def _removed_messages(before: Session | None, after: View) -> Iterator[Json]:
    """Messages that a revert removed and input that was cancelled. A compaction removes nothing.

    The client stops reading if it does not know a removed message. So it is told of it first.
    """
    session = after.session
    if before is None or _same_messages(before, session):
        return
    setting, since = after.setting(), session.transcript.compacted_seq or 0
    gone: list[Message] = []
    if len(session.transcript.lines) < len(before.transcript.lines):
        kept = {line.message.id for line in session.transcript.lines}
        gone += [
            line.message
            for line in before.transcript.lines
            if line.message.id not in kept and line.seq > since
        ]
    gone += [
        shown
        for pending in before.inbox.pending
        if _is_withdrawn(session, pending) and (shown := pending_message(pending)) is not None
    ]
    for message in gone:
        for viewed in view_message(message, setting, NOWHERE):
            yield _tell_message(viewed)
            ids = {"sessionID": session.id, "messageID": viewed.info["id"]}
            yield event("message.removed", ids)


def _is_withdrawn(session: Session, pending: PendingInput) -> bool:
    admission = session.inbox.admissions.get(pending.message_id)
    return admission is not None and admission.cancelled


def _is_prompt(message: Message) -> bool:
    return isinstance(message, UserMessage)


def _tell_message(viewed: ViewedMessage) -> Json:
    properties = {"sessionID": viewed.info["sessionID"], "info": viewed.info}
    return event("message.updated", properties)


def _tell_part(viewed: ViewedMessage, part: Json) -> Json:
    time = viewed.info["time"]
    properties = {"sessionID": part["sessionID"], "part": part}
    return event(
        "message.part.updated", {**properties, "time": time.get("completed", time["created"])}
    )
