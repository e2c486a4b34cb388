"""Events as a client receives them, for tests of what the terminal shows."""

from typing import Any

from fairlead_cli.chat.view.fold import fold
from fairlead_cli.chat.view.session_view import SessionView
from fairlead_client import ReceivedEvent

SESSION = "ses_a"
MODEL = {"providerID": "sim", "id": "fast"}
TOKENS = {"input": 100, "output": 20, "reasoning": 5, "cache": {"read": 10, "write": 0}}


def event(type_: str, **data: Any) -> ReceivedEvent:  # noqa: ANN401 - any JSON
    """A durable event, or a fragment if its type says so."""
    seq = None if type_.endswith(".delta") else 1
    return ReceivedEvent(type_, {"timestamp": 1000, "sessionID": SESSION, **data}, "evt_1", seq)


def folded(*events: ReceivedEvent, view: SessionView | None = None) -> SessionView:
    view = view or SessionView(SESSION)
    for item in events:
        fold(view, item)
    return view


def prompt(id_: str, text: str, *, delivery: str = "steer") -> list[ReceivedEvent]:
    body = {"messageID": id_, "prompt": {"text": text}, "delivery": delivery}
    return [event("prompt.admitted", **body), event("prompted", **body)]


def started(id_: str = "msg_x") -> ReceivedEvent:
    return event("step.started", assistantMessageID=id_, agent="build", model=MODEL)


def ended(id_: str = "msg_x", *, finish: str = "stop", cost: float = 0.5) -> ReceivedEvent:
    return event("step.ended", assistantMessageID=id_, finish=finish, cost=cost, tokens=TOKENS)


def text_delta(text: str, id_: str = "msg_x") -> ReceivedEvent:
    return event("text.delta", assistantMessageID=id_, textID="t", delta=text)


def text_ended(text: str, id_: str = "msg_x") -> ReceivedEvent:
    return event("text.ended", assistantMessageID=id_, textID="t", text=text)


def called(
    call: str = "call_1", tool: str = "bash", input_: dict[str, Any] | None = None
) -> list[ReceivedEvent]:
    ids = {"assistantMessageID": "msg_x", "callID": call}
    given = {"command": "ls"} if input_ is None else input_
    return [
        event("tool.input.started", **ids, name=tool),
        event("tool.called", **ids, tool=tool, input=given, provider={"executed": False}),
    ]


def succeeded(
    text: str, call: str = "call_1", *, structured: dict[str, Any] | None = None, at: int = 4000
) -> ReceivedEvent:
    content = [{"type": "text", "text": text}]
    data = {"assistantMessageID": "msg_x", "callID": call, "timestamp": at}
    return event("tool.success", **data, structured=structured or {}, content=content)


def asked(id_: str = "per_1", call: str = "call_1") -> ReceivedEvent:
    source = {"type": "tool", "messageID": "msg_x", "callID": call}
    what = {"action": "bash", "resources": ["rm x"], "save": ["rm x"], "source": source}
    return event("permission.v2.asked", id=id_, **what)
