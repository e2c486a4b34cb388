"""Events of a session as updates of the Agent Client Protocol. Pure: it keeps only what was said so far."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from acp import schema
from acp.helpers import (
    plan_entry,
    start_tool_call,
    text_block,
    tool_content,
    update_current_mode,
    update_plan,
    update_tool_call,
)

from fairlead_cli.acp.translation.prompt_blocks import show_prompt
from fairlead_cli.acp.translation.session_options import SessionOptions
from fairlead_cli.acp.translation.tool_calls import (
    change_of,
    kind_of,
    locations_of,
    output_of,
    title_of,
)
from fairlead_client import ReceivedEvent

Json: TypeAlias = dict[str, Any]
SessionUpdate: TypeAlias = (
    schema.UserMessageChunk
    | schema.AgentMessageChunk
    | schema.AgentThoughtChunk
    | schema.ToolCallStart
    | schema.ToolCallProgress
    | schema.AgentPlanUpdate
    | schema.CurrentModeUpdate
    | schema.ConfigOptionUpdate
    | schema.SessionInfoUpdate
    | schema.UsageUpdate
)

OUTPUT_LENGTH_MAX: Final = 4000
"""How much of its newest output a call shows while it runs."""
_DELTAS: Final = {"text.delta": "textID", "reasoning.delta": "reasoningID"}
_ENDS: Final = {"text.ended": "textID", "reasoning.ended": "reasoningID"}
_STEP_ENDS: Final = frozenset({"step.ended", "step.failed"})
_PLAN_STATUSES: Final = frozenset({"pending", "in_progress", "completed"})


@dataclass(slots=True)
class UpdateTranslator:
    """What the editor has of one session. Each event is taken once and in order."""

    directory: str
    options: SessionOptions
    own_prompts: set[str] = field(default_factory=set)
    """The editor shows these prompts already."""
    _passed: dict[tuple[str, str], str] = field(default_factory=dict)
    _calls: dict[str, tuple[str, Json]] = field(default_factory=dict)
    _outputs: dict[str, str] = field(default_factory=dict)
    _usage: Json = field(default_factory=dict)

    def take(self, event: ReceivedEvent) -> list[SessionUpdate]:
        """What the editor gets for one event."""
        type_, data = event.type, event.data
        if type_ in _DELTAS:
            return self._pass_text(type_, data, data[_DELTAS[type_]], data["delta"])
        if type_ in _ENDS:
            return self._end_text(type_, data, data[_ENDS[type_]])
        if type_.startswith(("tool.", "shell.")):
            return self._take_call(type_, data)
        if type_ in _STEP_ENDS:
            self._passed.clear()
            self._outputs.clear()
        return list(self._take_session(type_, data))

    def _pass_text(self, type_: str, data: Json, block: str, text: str) -> list[SessionUpdate]:
        key = (data["assistantMessageID"], block)
        self._passed[key] = self._passed.get(key, "") + text
        return [_chunk(type_, text, key[0])] if text else []

    def _end_text(self, type_: str, data: Json, block: str) -> list[SessionUpdate]:
        """The end of a text. Fragments may be missing, and the whole text never is.

        A crash may have lost what was shown last. The protocol cannot take it back.
        """
        key, whole = (data["assistantMessageID"], block), data["text"]
        passed = self._passed.pop(key, "")
        if passed.startswith(whole):
            return []
        rest = whole[len(passed) :] if whole.startswith(passed) else f"\n{whole}"
        return [_chunk(type_, rest, key[0])] if rest else []

    def _take_call(self, type_: str, data: Json) -> list[SessionUpdate]:
        id_ = data.get("callID", "")
        match type_:
            case "tool.input.started":
                return self._begin_call(id_, data["name"], {}, "pending")
            case "tool.called":
                return self._begin_call(id_, data["tool"], data["input"], "in_progress")
            case "shell.started":
                return self._begin_call(id_, "bash", {"command": data["command"]}, "in_progress")
            case "shell.ended":
                failed = data.get("exit") not in {0, None}
                output = [tool_content(text_block(data["output"]))] if data["output"] else []
                return [
                    update_tool_call(
                        id_, status="failed" if failed else "completed", content=output
                    )
                ]
            case "tool.output.delta":
                output = self._outputs.get(id_, "") + data["delta"]
                self._outputs[id_] = output[-OUTPUT_LENGTH_MAX:]
                return [
                    update_tool_call(id_, content=[tool_content(text_block(self._outputs[id_]))])
                ]
            case "tool.progress":
                return [update_tool_call(id_, content=output_of(data["content"]))]
            case "tool.success":
                return [self._succeed(id_, data)]
            case "tool.failed":
                text = data["error"].get("message", "failed")
                content = [tool_content(text_block(text))]
                return [update_tool_call(id_, status="failed", content=content)]
            case _:
                return []

    def _begin_call(
        self, id_: str, tool: str, given: Json, status: schema.ToolCallStatus
    ) -> list[SessionUpdate]:
        is_known = id_ in self._calls
        self._calls[id_] = (tool, given)
        build = update_tool_call if is_known else start_tool_call
        return [
            build(
                id_,
                title=title_of(tool, given),
                kind=kind_of(tool),
                status=status,
                content=change_of(self.directory, tool, given) or None,
                locations=locations_of(self.directory, given) or None,
                raw_input=given or None,
            )
        ]

    def _succeed(self, id_: str, data: Json) -> SessionUpdate:
        tool, given = self._calls.get(id_, ("", {}))
        structured = data.get("structured") or {}
        change = change_of(self.directory, tool, given)
        return update_tool_call(
            id_,
            status="completed",
            content=change or output_of(data["content"]),
            locations=locations_of(self.directory, given, structured) or None,
            raw_output=structured or None,
        )

    def _take_session(self, type_: str, data: Json) -> Iterable[SessionUpdate]:
        match type_:
            case "prompted" if data["messageID"] not in self.own_prompts:
                for block in show_prompt(data["prompt"]):
                    yield schema.UserMessageChunk(
                        session_update="user_message_chunk",
                        content=block,
                        message_id=data["messageID"],
                    )
            case "agent.switched":
                self.options.agent = data["agent"]
                yield update_current_mode(data["agent"])
            case "model.switched":
                self.options.model = model_name(data["model"])
                yield schema.ConfigOptionUpdate(
                    session_update="config_option_update",
                    config_options=[*self.options.config_options()],
                )
            case "session.described" | "title.ended" if data.get("title"):
                yield schema.SessionInfoUpdate(
                    session_update="session_info_update", title=data["title"]
                )
            case "todo.updated":
                yield _plan(data["todos"])
            case "step.started":
                self._usage = {"model": model_name(data["model"])}
            case "step.ended":
                yield from self._usage_updates(data)
            case _:
                pass

    def _usage_updates(self, data: Json) -> Iterable[SessionUpdate]:
        window = self.options.windows.get(self._usage.get("model", ""))
        tokens = data["tokens"]
        if window:
            cache = tokens.get("cache") or {}
            used = tokens["input"] + tokens["output"] + cache.get("read", 0) + cache.get("write", 0)
            yield schema.UsageUpdate(session_update="usage_update", used=used, size=window)


def model_name(model: Mapping[str, Any]) -> str:
    """A model as people write it: `provider/model`."""
    return f"{model['providerID']}/{model['id']}"


def _chunk(type_: str, text: str, message_id: str) -> SessionUpdate:
    if type_.startswith("reasoning."):
        return schema.AgentThoughtChunk(
            session_update="agent_thought_chunk", content=text_block(text), message_id=message_id
        )
    return schema.AgentMessageChunk(
        session_update="agent_message_chunk", content=text_block(text), message_id=message_id
    )


def _plan(todos: list[Json]) -> SessionUpdate:
    """The todo list. The protocol has no word for a cancelled item, so it is left out."""
    return update_plan(
        plan_entry(todo["content"], priority=todo["priority"], status=todo["status"])
        for todo in todos
        if todo["status"] in _PLAN_STATUSES
    )
