"""Folds tool calls, and commands that people run."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fairlead_cli.chat.view.entries import CallEntry, CallState
from fairlead_cli.chat.view.plain_text import clean
from fairlead_cli.chat.view.session_view import EventHandler, SessionView
from fairlead_session.calls.child_ids import TASK, child_of

OUTPUT_LENGTH_MAX: Final = 100_000
"""The most characters of an output that are kept: its end, as a terminal would show it."""
DRAFT_LENGTH_MAX: Final = 2_000
"""So much of an unfinished input is kept: what names the call stands at its beginning."""


def _fold_input_started(view: SessionView, data: dict[str, Any]) -> None:
    call = _entry(view, data)
    call.tool, call.revision = clean(data["name"]), call.revision + 1


def _fold_input_delta(view: SessionView, data: dict[str, Any]) -> None:
    # The first pieces may come before the event that names the tool.
    call = _entry(view, data)
    if call.state == "writing":
        room = DRAFT_LENGTH_MAX - len(call.draft)
        call.draft += data["delta"][: max(0, room)]
        call.written += len(data["delta"])
        call.revision += 1


def _fold_called(view: SessionView, data: dict[str, Any]) -> None:
    call = _entry(view, data)
    call.tool, call.draft = clean(data["tool"]), ""
    call.input = data["input"] if isinstance(data["input"], dict) else {}
    call.began = data.get("timestamp", 0)
    if call.tool == TASK:
        call.child = child_of(view.session_id, data["assistantMessageID"], data["callID"])
    _move(call, "running")


def _fold_output(view: SessionView, data: dict[str, Any]) -> None:
    call = view.call(data["callID"])
    if call is not None and not call.ended:
        call.output = (call.output + clean(data["delta"]))[-OUTPUT_LENGTH_MAX:]
        call.revision += 1


def _fold_progressed(view: SessionView, data: dict[str, Any]) -> None:
    call = _entry(view, data)
    call.output, call.structured = _text_of(data["content"]) or call.output, data["structured"]
    call.revision += 1


def _fold_succeeded(view: SessionView, data: dict[str, Any]) -> None:
    call = _entry(view, data)
    call.output, call.structured = _text_of(data["content"]), data["structured"]
    call.ended = data.get("timestamp", 0)
    _move(call, "done")


def _fold_failed(view: SessionView, data: dict[str, Any]) -> None:
    call = _entry(view, data)
    call.error = clean(data["error"].get("message") or "It failed.")
    call.ended = data.get("timestamp", 0)
    _move(call, "failed")


def _fold_shell_started(view: SessionView, data: dict[str, Any]) -> None:
    key, id_ = f"call/{data['callID']}", data["messageID"]
    if key in view.by_key:
        return
    call = CallEntry(key=key, message_id=id_, call_id=data["callID"], tool="bash", is_own=True)
    call.input, call.state = {"command": data["command"]}, "running"
    call.began = data.get("timestamp", 0)
    view.add(call)


def _fold_shell_ended(view: SessionView, data: dict[str, Any]) -> None:
    call = view.call(data["callID"])
    if call is None:
        return
    call.output, call.ended = clean(data["output"]), data.get("timestamp", 0)
    call.structured = {"exit": data["exit"]} if "exit" in data else {}
    _move(call, "done" if data.get("exit") == 0 else "failed")


def _entry(view: SessionView, data: dict[str, Any]) -> CallEntry:
    call = view.call(data["callID"])
    if call is None:
        id_ = data["callID"]
        message_id = data["assistantMessageID"]
        call = CallEntry(key=f"call/{id_}", message_id=message_id, call_id=id_, tool="tool")
        view.add(call)
    return call


def _move(call: CallEntry, state: CallState) -> None:
    call.state = state
    call.revision += 1


def _text_of(content: Sequence[dict[str, Any]]) -> str:
    """The text of a result, and a line for each file in it. More may follow on its last line."""
    pieces = [
        item["text"] if item["type"] == "text" else f"[{item.get('name') or item.get('mime')}]"
        for item in content
    ]
    *others, last = pieces or [""]
    joined = "\n".join([*(piece.rstrip("\n") for piece in others), last])
    return clean(joined)[-OUTPUT_LENGTH_MAX:]


CALL_EVENTS: Final[Mapping[str, EventHandler]] = {
    "tool.input.started": _fold_input_started,
    "tool.input.delta": _fold_input_delta,
    "tool.called": _fold_called,
    "tool.output.delta": _fold_output,
    "tool.progress": _fold_progressed,
    "tool.success": _fold_succeeded,
    "tool.failed": _fold_failed,
    "shell.started": _fold_shell_started,
    "shell.ended": _fold_shell_ended,
}
