"""Folds what concerns the session itself: its inbox, its model and agent, undo, and its todo list."""

from collections.abc import Mapping
from typing import Any, Final

from fairlead_cli.chat.view.entries import PromptEntry, WaitingPrompt
from fairlead_cli.chat.view.plain_text import clean, one_line
from fairlead_cli.chat.view.session_view import SAID_RESTS, EventHandler, SessionView

_GOES_ON_BY_ITSELF: Final = frozenset(
    {"parked", "handover", "retry-later", "context-unavailable", "budget-unknown"}
)


def _fold_created(view: SessionView, data: dict[str, Any]) -> None:
    view.title = clean(data["title"])
    view.directory = clean(data["location"]["directory"])
    view.agent = data.get("agent") or view.agent
    if data.get("model"):
        take_model(view, data["model"])


def _fold_described(view: SessionView, data: dict[str, Any]) -> None:
    view.title = one_line(data.get("title") or view.title, 200)


def _fold_titled(view: SessionView, data: dict[str, Any]) -> None:
    _fold_described(view, data)
    view.cost += data["cost"]


def _fold_admitted(view: SessionView, data: dict[str, Any]) -> None:
    text = clean(_typed_text(data["prompt"]))
    view.inbox[data["messageID"]] = WaitingPrompt(data["messageID"], text, data["delivery"])
    if data.get("resume") is not False:
        view.activity = "working"


def _fold_edited(view: SessionView, data: dict[str, Any]) -> None:
    text = clean(_typed_text(data["prompt"]))
    view.inbox[data["messageID"]] = WaitingPrompt(data["messageID"], text, data["delivery"])


def _fold_cancelled(view: SessionView, data: dict[str, Any]) -> None:
    view.inbox.pop(data["messageID"], None)


def _fold_prompted(view: SessionView, data: dict[str, Any]) -> None:
    id_, prompt = data["messageID"], data["prompt"]
    view.inbox.pop(id_, None)
    view.activity, view.reason = "working", ""
    files = tuple(one_line(file.get("name") or file["uri"]) for file in prompt.get("files") or ())
    if f"prompt/{id_}" not in view.by_key:
        text = clean(_typed_text(prompt))
        view.add(PromptEntry(key=f"prompt/{id_}", message_id=id_, text=text, files=files))


def _fold_interrupted(view: SessionView, data: dict[str, Any]) -> None:
    del data
    view.activity = "stopping" if view.activity == "working" else view.activity


def _fold_released(view: SessionView, data: dict[str, Any]) -> None:
    goes_on = data["reason"] in _GOES_ON_BY_ITSELF
    view.activity = "working" if goes_on else "resting"
    is_said = goes_on or data["reason"] in SAID_RESTS
    view.reason = (
        "" if is_said else one_line(data.get("detail") or f"It rests: {data['reason']}.", 400)
    )


def _fold_staged(view: SessionView, data: dict[str, Any]) -> None:
    view.boundary = data["revert"]["messageID"]
    view.hides_boundary = data["revert"].get("before") is True
    view.shape += 1


def _fold_cleared(view: SessionView, data: dict[str, Any]) -> None:
    del data
    view.boundary = None
    view.shape += 1


def _fold_committed(view: SessionView, data: dict[str, Any]) -> None:
    view.boundary, view.hides_boundary = data["messageID"], data.get("before") is True
    kept = {entry.key for entry in view.shown}
    view.remove(*[entry for entry in view.entries if entry.key not in kept])
    view.boundary = None


def _fold_todo(view: SessionView, data: dict[str, Any]) -> None:
    todos = data["todos"]
    now = next((todo for todo in todos if todo["status"] == "in_progress"), None)
    done = sum(todo["status"] == "completed" for todo in todos)
    view.todo = "" if now is None else f"{one_line(now['content'])} ({done}/{len(todos)})"


def _fold_agent(view: SessionView, data: dict[str, Any]) -> None:
    view.agent = data["agent"]
    view.notice(f"agent/{data['messageID']}", f"The agent is {one_line(data['agent'])} now.")


def _fold_model(view: SessionView, data: dict[str, Any]) -> None:
    take_model(view, data["model"])
    view.notice(f"model/{data['messageID']}", f"The model is {view.model} now.")


def _fold_moved(view: SessionView, data: dict[str, Any]) -> None:
    before, view.directory = view.directory, clean(data["location"]["directory"])
    if view.directory != before:
        text = f"The session works in {view.directory} now."
        view.notice(f"moved/{data['timestamp']}", text)


def _fold_archived(view: SessionView, data: dict[str, Any]) -> None:
    view.activity = "resting"
    text = "The session is in the archive. /unarchive brings it back, /new begins another."
    view.notice(f"archived/{data['timestamp']}", text, "warning")


def _fold_unarchived(view: SessionView, data: dict[str, Any]) -> None:
    view.reason = ""
    view.notice(f"unarchived/{data['timestamp']}", "The session is back from the archive.")


def take_model(view: SessionView, model: dict[str, Any]) -> None:
    view.model = one_line(f"{model['providerID']}/{model['id']}")


def _typed_text(prompt: dict[str, Any]) -> str:
    """What a person typed, if the prompt was expanded."""
    source = prompt.get("source")
    text: str = source["text"] if source else prompt["text"]
    return text


SESSION_EVENTS: Final[Mapping[str, EventHandler]] = {
    "session.created": _fold_created,
    "session.described": _fold_described,
    "title.ended": _fold_titled,
    "prompt.admitted": _fold_admitted,
    "input.edited": _fold_edited,
    "input.cancelled": _fold_cancelled,
    "prompted": _fold_prompted,
    "interrupt.requested": _fold_interrupted,
    "execution.released": _fold_released,
    "revert.staged": _fold_staged,
    "revert.cleared": _fold_cleared,
    "revert.committed": _fold_committed,
    "todo.updated": _fold_todo,
    "agent.switched": _fold_agent,
    "model.switched": _fold_model,
    "moved": _fold_moved,
    "session.archived": _fold_archived,
    "session.unarchived": _fold_unarchived,
}
