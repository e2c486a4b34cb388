"""Events of a session as events of an AG-UI run. Pure: it keeps only what was said so far."""

import json
from collections.abc import Iterable
from typing import Any, Final, TypeAlias

from ag_ui.core import (
    BaseEvent,
    ReasoningEndEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    ReasoningStartEvent,
    StateDeltaEvent,
    StepFinishedEvent,
    StepStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)

from fairlead_gateway.ag_ui_view.translation.message_ids import (
    SHELL,
    model_name,
    output_text,
    reasoning_id,
    result_id,
    text_id,
)
from fairlead_gateway.turn_view.text_progress import TextProgress
from fairlead_gateway.turn_view.turn_progress import type_of

Json: TypeAlias = dict[str, Any]
Events: TypeAlias = Iterable[BaseEvent]

_STATE: Final = {"title.ended": "title", "session.described": "title", "todo.updated": "todos"}
_FRAGMENTS: Final = frozenset({"text.delta", "reasoning.delta", "tool.input.delta"})


class RunTranslator:
    """What a front end has of one run. Each event is taken once and in order."""

    def __init__(self, *, known_messages: frozenset[str] = frozenset()) -> None:
        """The front end has the known messages from a snapshot: nothing of them is said again."""
        self._known = known_messages
        self._texts = TextProgress()
        self._open_texts: dict[str, None] = {}
        self._open_reasonings: dict[str, None] = {}
        self._open_calls: dict[str, None] = {}
        self._begun_calls: set[str] = set()
        self._early_input: dict[str, str] = {}
        self._shells: dict[str, str] = {}
        self._begun_steps: set[str] = set()
        self._step: str | None = None

    def take(self, event: Json) -> list[BaseEvent]:
        """What the front end gets for one event."""
        type_, data = type_of(event), event["data"]
        message = data.get("assistantMessageID", data.get("messageID"))
        if message in self._known:
            return []
        # A fragment may come before the event that begins its step.
        begun = self._begin_step(message) if type_ in _FRAGMENTS else ()
        return [*begun, *self._take_part(type_, data)]

    def _take_part(self, type_: str, data: Json) -> list[BaseEvent]:
        if type_.startswith("text."):
            return list(self._take_text(type_, data))
        if type_.startswith("reasoning."):
            return list(self._take_reasoning(type_, data))
        if type_.startswith("tool."):
            return list(self._take_call(type_, data))
        if type_.startswith("shell."):
            return list(self._take_shell(type_, data))
        return list(self._take_session(type_, data))

    def close(self) -> list[BaseEvent]:
        """Close everything that is open: a run ends without loose ends."""
        return [
            *(event for id_ in list(self._open_texts) for event in self._end_text(id_)),
            *(event for id_ in list(self._open_reasonings) for event in self._end_reasoning(id_)),
            *(event for id_ in list(self._open_calls) for event in self._end_call(id_)),
            *self._end_step(),
        ]

    def _take_text(self, type_: str, data: Json) -> Events:
        message, block = data["assistantMessageID"], data["textID"]
        id_ = text_id(message, block)
        new = self._new_text(type_, (message, id_), data)
        if id_ not in self._open_texts and (new or type_ == "text.started"):
            self._open_texts[id_] = None
            yield TextMessageStartEvent(message_id=id_, role="assistant")
        if new:
            yield TextMessageContentEvent(message_id=id_, delta=new)
        if type_ == "text.ended":
            yield from self._end_text(id_)

    def _take_reasoning(self, type_: str, data: Json) -> Events:
        message, block = data["assistantMessageID"], data["reasoningID"]
        id_ = reasoning_id(message, block)
        new = self._new_text(type_, (message, id_), data)
        if id_ not in self._open_reasonings and (new or type_ == "reasoning.started"):
            self._open_reasonings[id_] = None
            yield ReasoningStartEvent(message_id=id_)
            yield ReasoningMessageStartEvent(message_id=id_)
        if new:
            yield ReasoningMessageContentEvent(message_id=id_, delta=new)
        if type_ == "reasoning.ended":
            yield from self._end_reasoning(id_)

    def _new_text(self, type_: str, key: tuple[str, str], data: Json) -> str:
        """The text that this event adds. What a crash lost cannot be taken back."""
        if type_.endswith(".delta"):
            return self._texts.take(key, data["delta"], data.get("index"))
        if type_.endswith(".ended"):
            return self._texts.end(key, data["text"]) or ""
        return ""

    def _take_call(self, type_: str, data: Json) -> Events:
        id_, message = data["callID"], data["assistantMessageID"]
        match type_:
            case "tool.input.delta" if id_ in self._begun_calls:
                new = self._texts.take((message, id_), data["delta"], data.get("index"))
                yield from self._pass_input(id_, new)
            case "tool.input.delta":
                # The name of the tool comes with the event that begins the call.
                new = self._texts.take((message, id_), data["delta"], data.get("index"))
                self._early_input[id_] = self._early_input.get(id_, "") + new
            case "tool.input.started":
                yield from self._begin_call(id_, data["name"], message)
            case "tool.input.ended":
                yield from self._pass_input(id_, self._texts.end((message, id_), data["text"]))
                yield from self._end_call(id_)
            case "tool.called" if id_ not in self._begun_calls:
                yield from self._begin_call(id_, data["tool"], message)
                yield from self._pass_input(id_, json.dumps(data["input"]))
                yield from self._end_call(id_)
            case "tool.success":
                yield from self._end_call(id_)
                yield _result(id_, output_text(data["content"]))
            case "tool.failed":
                yield from self._end_call(id_)
                yield _result(id_, data["error"].get("message", "failed"))
            case _:
                pass

    def _begin_call(self, id_: str, tool: str, message: str) -> Events:
        self._begun_calls.add(id_)
        self._open_calls[id_] = None
        yield ToolCallStartEvent(tool_call_id=id_, tool_call_name=tool, parent_message_id=message)
        yield from self._pass_input(id_, self._early_input.pop(id_, ""))

    def _pass_input(self, id_: str, text: str | None) -> Events:
        if text and id_ in self._open_calls:
            yield ToolCallArgsEvent(tool_call_id=id_, delta=text)

    def _take_shell(self, type_: str, data: Json) -> Events:
        """A person's own command, with its result: an open call would ask the front end for one."""
        id_ = data["callID"]
        if type_ == "shell.started":
            self._shells[id_] = data["command"]
        elif type_ == "shell.ended" and (command := self._shells.pop(id_, None)) is not None:
            yield ToolCallStartEvent(tool_call_id=id_, tool_call_name=SHELL)
            yield ToolCallArgsEvent(tool_call_id=id_, delta=json.dumps({"command": command}))
            yield ToolCallEndEvent(tool_call_id=id_)
            yield _result(id_, data["output"])

    def _take_session(self, type_: str, data: Json) -> Events:
        match type_:
            case "prompted":
                id_ = data["messageID"]
                yield TextMessageStartEvent(message_id=id_, role="user")
                yield TextMessageContentEvent(message_id=id_, delta=data["prompt"]["text"])
                yield TextMessageEndEvent(message_id=id_)
            case "step.started":
                yield from self._begin_step(data["assistantMessageID"])
            case "step.ended" | "step.failed":
                yield from self.close()
                self._texts.clear()
            case "agent.switched":
                yield _change("agent", data["agent"])
            case "model.switched":
                yield _change("model", model_name(data["model"]))
            case "title.ended" | "session.described" | "todo.updated" if data.get(_STATE[type_]):
                yield _change(_STATE[type_], data[_STATE[type_]])
            case _:
                pass

    def _end_text(self, id_: str) -> Events:
        if id_ in self._open_texts:
            del self._open_texts[id_]
            yield TextMessageEndEvent(message_id=id_)

    def _end_reasoning(self, id_: str) -> Events:
        if id_ in self._open_reasonings:
            del self._open_reasonings[id_]
            yield ReasoningMessageEndEvent(message_id=id_)
            yield ReasoningEndEvent(message_id=id_)

    def _end_call(self, id_: str) -> Events:
        if id_ in self._open_calls:
            del self._open_calls[id_]
            yield ToolCallEndEvent(tool_call_id=id_)

    def _begin_step(self, message: str) -> Events:
        if message not in self._begun_steps:
            yield from self._end_step()
            self._begun_steps.add(message)
            self._step = message
            yield StepStartedEvent(step_name=message)

    def _end_step(self) -> Events:
        if self._step is not None:
            yield StepFinishedEvent(step_name=self._step)
            self._step = None


def _result(call_id: str, text: str) -> BaseEvent:
    return ToolCallResultEvent(
        message_id=result_id(call_id), tool_call_id=call_id, content=text, role="tool"
    )


def _change(key: str, value: object) -> BaseEvent:
    change = {"op": "replace", "path": f"/{key}", "value": value}
    return StateDeltaEvent.model_validate({"delta": [change]})
