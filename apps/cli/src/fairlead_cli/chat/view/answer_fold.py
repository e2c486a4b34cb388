"""Folds what the model says: steps, texts, reasoning, and summaries."""

from collections.abc import Mapping
from typing import Any, Final

from fairlead_cli.chat.view.entries import (
    CallEntry,
    NoticeLevel,
    ReasoningEntry,
    SummaryEntry,
    TextEntry,
)
from fairlead_cli.chat.view.plain_text import clean, one_line
from fairlead_cli.chat.view.session_fold import take_model
from fairlead_cli.chat.view.session_view import EventHandler, SessionView
from fairlead_schema.catalog import Tokens

_GOES_ON: Final = frozenset({"tool-calls", "invalid-output"})


def _fold_step_started(view: SessionView, data: dict[str, Any]) -> None:
    _drop_open(view, except_for=data["assistantMessageID"])
    view.activity, view.agent = "working", data["agent"]
    take_model(view, data["model"])


def _fold_step_ended(view: SessionView, data: dict[str, Any]) -> None:
    tokens = Tokens.model_validate(data["tokens"])
    cache = tokens.cache
    view.tokens = tokens.input + tokens.output + tokens.reasoning + cache.read + cache.write
    view.cost += data["cost"]
    if data["finish"] not in _GOES_ON and not view.inbox:
        view.activity = "resting"
    if data["finish"] == "length":
        view.notice(f"length/{data['assistantMessageID']}", "The answer met its limit.", "warning")


def _fold_step_failed(view: SessionView, data: dict[str, Any]) -> None:
    for entry in view.entries:
        if isinstance(entry, TextEntry | ReasoningEntry) and entry.is_open:
            entry.is_open, entry.revision = False, entry.revision + 1
    message = one_line(data["error"].get("message") or "The step failed.", 400)
    was_stopped = view.activity == "stopping" or "interrupt" in message.lower()
    key = f"failed/{data['assistantMessageID']}"
    if was_stopped:
        view.notice(key, "Interrupted.")
    else:
        view.notice(key, message, "error")
    view.activity = "resting"


def _text(view: SessionView, data: dict[str, Any]) -> TextEntry:
    key = f"text/{data['assistantMessageID']}/{data['textID']}"
    entry = view.by_key.get(key)
    if isinstance(entry, TextEntry):
        return entry
    return view.add(TextEntry(key=key, message_id=data["assistantMessageID"]))


def _reasoning(view: SessionView, data: dict[str, Any]) -> ReasoningEntry:
    key = f"reasoning/{data['assistantMessageID']}/{data['reasoningID']}"
    entry = view.by_key.get(key)
    if isinstance(entry, ReasoningEntry):
        return entry
    return view.add(ReasoningEntry(key=key, message_id=data["assistantMessageID"]))


def _grow(entry: TextEntry | ReasoningEntry | SummaryEntry, delta: str) -> None:
    if entry.is_open:
        entry.text += clean(delta)
        entry.revision += 1


def _close(entry: TextEntry | ReasoningEntry | SummaryEntry, text: str) -> None:
    entry.text, entry.is_open = clean(text), False
    entry.revision += 1


def _fold_delta(view: SessionView, data: dict[str, Any]) -> None:
    view.activity = "working" if view.activity == "resting" else view.activity
    _grow(_text(view, data) if "textID" in data else _reasoning(view, data), data["delta"])


def _fold_recovered(view: SessionView, data: dict[str, Any]) -> None:
    del data
    _drop_open(view, except_for="")
    view.activity = "working"


def _drop_open(view: SessionView, *, except_for: str) -> None:
    """Take away what a turn that died has begun: no event ends it, and the next turn says it again."""
    dead = [
        entry
        for entry in view.entries[-64:]
        if entry.message_id != except_for
        and (
            (isinstance(entry, TextEntry | ReasoningEntry) and entry.is_open)
            or (isinstance(entry, CallEntry) and entry.state == "writing")
        )
    ]
    if dead:
        view.remove(*dead)


def _fold_retried(view: SessionView, data: dict[str, Any]) -> None:
    error = data["error"]
    text = f"Attempt {data['attempt']} failed, and another follows: {error['message']}"
    view.notice(f"retried/{data['timestamp']}", one_line(text, 300), "warning")


def _fold_compaction_started(view: SessionView, data: dict[str, Any]) -> None:
    id_ = data["messageID"]
    view.activity = "working"
    if f"summary/{id_}" not in view.by_key:
        view.add(SummaryEntry(key=f"summary/{id_}", message_id=id_))


def _summary(view: SessionView, data: dict[str, Any]) -> SummaryEntry | None:
    entry = view.by_key.get(f"summary/{data['messageID']}")
    return entry if isinstance(entry, SummaryEntry) else None


def _fold_compaction_delta(view: SessionView, data: dict[str, Any]) -> None:
    if (entry := _summary(view, data)) is not None:
        _grow(entry, data["text"])


def _fold_compaction_ended(view: SessionView, data: dict[str, Any]) -> None:
    _fold_compaction_started(view, data)
    if (entry := _summary(view, data)) is not None:
        _close(entry, data["text"])
    view.tokens = 0
    view.activity = "working" if view.inbox or data["reason"] == "auto" else "resting"


def _fold_compaction_failed(view: SessionView, data: dict[str, Any]) -> None:
    if data.get("messageID") and (entry := _summary(view, data)) is not None:
        view.remove(entry)
    level: NoticeLevel = "info" if data["outcome"] == "nothing" else "error"
    text = f"Not compacted: {one_line(data['message'], 300)}"
    view.notice(f"compaction/{data['timestamp']}", text, level)
    view.activity = "working" if view.inbox else "resting"


def _fold_used(view: SessionView, data: dict[str, Any]) -> None:
    view.cost += data["cost"]


def _fold_text_started(view: SessionView, data: dict[str, Any]) -> None:
    _text(view, data)


def _fold_text_ended(view: SessionView, data: dict[str, Any]) -> None:
    _close(_text(view, data), data["text"])


def _fold_reasoning_started(view: SessionView, data: dict[str, Any]) -> None:
    _reasoning(view, data)


def _fold_reasoning_ended(view: SessionView, data: dict[str, Any]) -> None:
    _close(_reasoning(view, data), data["text"])


ANSWER_EVENTS: Final[Mapping[str, EventHandler]] = {
    "step.started": _fold_step_started,
    "step.ended": _fold_step_ended,
    "step.failed": _fold_step_failed,
    "text.started": _fold_text_started,
    "text.delta": _fold_delta,
    "text.ended": _fold_text_ended,
    "reasoning.started": _fold_reasoning_started,
    "reasoning.delta": _fold_delta,
    "reasoning.ended": _fold_reasoning_ended,
    "execution.recovered": _fold_recovered,
    "retried": _fold_retried,
    "compaction.started": _fold_compaction_started,
    "compaction.delta": _fold_compaction_delta,
    "compaction.ended": _fold_compaction_ended,
    "compaction.failed": _fold_compaction_failed,
    "compaction.used": _fold_used,
}
