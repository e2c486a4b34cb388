"""Folds what people are asked, and what they answered."""

from collections.abc import Mapping
from typing import Any, Final

from fairlead_cli.chat.view.plain_text import one_line
from fairlead_cli.chat.view.session_view import EventHandler, SessionView
from fairlead_schema.permission import PermissionRequest, QuestionRequest

_REPLIES: Final = {"once": "Permitted once", "always": "Permitted always", "reject": "Rejected"}


def _fold_permission_asked(view: SessionView, data: dict[str, Any]) -> None:
    request = PermissionRequest.model_validate(data)
    view.asks[request.id] = request
    _wait(view, request.source.call_id if request.source else None)


def _fold_question_asked(view: SessionView, data: dict[str, Any]) -> None:
    request = QuestionRequest.model_validate(data)
    view.asks[request.id] = request
    _wait(view, request.tool.call_id if request.tool else None)


def _wait(view: SessionView, call_id: str | None) -> None:
    call = view.call(call_id) if call_id else None
    if call is not None:
        call.state, call.revision = "waiting", call.revision + 1


def _fold_permission_replied(view: SessionView, data: dict[str, Any]) -> None:
    request = view.asks.pop(data["requestID"], None)
    if not isinstance(request, PermissionRequest):
        return
    call = view.call(request.source.call_id) if request.source else None
    if call is not None and call.state == "waiting":
        call.state, call.revision = "running", call.revision + 1
    what = one_line(f"{request.action} {', '.join(request.resources)}", 120)
    reason = f" ({one_line(data['message'], 120)})" if data.get("message") else ""
    view.notice(f"ask/{request.id}", f"{_REPLIES[data['reply']]}: {what}{reason}")


def _fold_question_replied(view: SessionView, data: dict[str, Any]) -> None:
    view.asks.pop(data["requestID"], None)


ASK_EVENTS: Final[Mapping[str, EventHandler]] = {
    "permission.v2.asked": _fold_permission_asked,
    "permission.v2.replied": _fold_permission_replied,
    "question.v2.asked": _fold_question_asked,
    "question.v2.replied": _fold_question_replied,
    "question.v2.rejected": _fold_question_replied,
}
