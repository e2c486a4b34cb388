"""Events of a session as a task of A2A and as updates of it. Pure: it keeps the task so far."""

from collections.abc import Iterable
from typing import Any, TypeAlias

from a2a.types import (
    Artifact,
    Message,
    Part,
    Role,
    StreamResponse,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Value

from fairlead_gateway.a2a_view.translation.task_ids import TaskRef
from fairlead_gateway.turn_view.text_progress import TextProgress
from fairlead_gateway.turn_view.turn_progress import STOPPED, TurnProgress, seq_of, type_of

Json: TypeAlias = dict[str, Any]


class TaskTranslator:
    """One task. Each event is taken once and in order; its progress takes it first."""

    def __init__(self, ref: TaskRef) -> None:
        self.ref = ref
        self.progress = TurnProgress(ref.message_id)
        self.is_found = False
        """Whether the log has the admission that the id of the task names."""
        self.changed_ms = 0
        """When the last event of the task was written."""
        self._texts = TextProgress()
        self._artifacts: dict[str, Artifact] = {}
        self._prompt: Json = {}

    def take(self, event: Json) -> list[StreamResponse]:
        """What a client gets for one event."""
        if seq_of(event) is not None:
            self.changed_ms = event["data"]["timestamp"]
        return list(self._take(type_of(event), event["data"]))

    def task(self, *, history_length: int | None = None, with_artifacts: bool = True) -> Task:
        """The task as it is now, with as much of its history as the caller wants."""
        prompt = Message(
            message_id=self.ref.message_id,
            context_id=self.ref.session_id,
            task_id=self.ref.task_id,
            role=Role.ROLE_USER,
            parts=[Part(text=self._prompt.get("text", ""))],
        )
        return Task(
            id=self.ref.task_id,
            context_id=self.ref.session_id,
            status=self.status(),
            artifacts=self._artifacts.values() if with_artifacts else (),
            history=[prompt] if self._prompt and history_length != 0 else [],
        )

    def status(self) -> TaskStatus:
        """The state of the task, with what people have to know of it."""
        progress = self.progress
        if not progress.is_over:
            if progress.asks:
                return self._status(TaskState.TASK_STATE_INPUT_REQUIRED, _ask_parts(progress.asks))
            if progress.has_begun:
                return self._status(TaskState.TASK_STATE_WORKING)
            return self._status(TaskState.TASK_STATE_SUBMITTED)
        if progress.is_withdrawn or (progress.rested in STOPPED and not progress.is_answered):
            return self._status(TaskState.TASK_STATE_CANCELED)
        if progress.failure is not None:
            text = progress.failure.get("message", "the turn failed")
            return self._status(TaskState.TASK_STATE_FAILED, [Part(text=text)])
        if not progress.is_answered and progress.rested != "idle":
            text = progress.detail or f"The session rests: {progress.rested}"
            return self._status(TaskState.TASK_STATE_FAILED, [Part(text=text)])
        return self._status(TaskState.TASK_STATE_COMPLETED)

    def status_update(self) -> StreamResponse:
        """The state of the task as an update."""
        return self._update(self.status())

    def _take(self, type_: str, data: Json) -> Iterable[StreamResponse]:
        match type_:
            case "prompt.admitted" if data["messageID"] == self.ref.message_id:
                self.is_found, self._prompt = True, data["prompt"]
            case "prompted" if data["messageID"] == self.ref.message_id:
                yield self._update(self._status(TaskState.TASK_STATE_WORKING))
            case _ if self.progress.has_begun:
                # What the session says before belongs to another task.
                yield from self._take_turn(type_, data)
            case _:
                pass

    def _take_turn(self, type_: str, data: Json) -> Iterable[StreamResponse]:
        match type_:
            case "text.delta":
                new = self._texts.take(_key(data), data["delta"], data.get("index"))
                yield from self._extend(_artifact_id(data), new)
            case "text.ended":
                yield self._complete(data)
            case "step.ended":
                self._texts.clear()
                yield from self._add_output(data)
            case "tool.called":
                yield self._update(self._tell_call(data, "called"))
            case "tool.success" | "tool.failed":
                yield self._update(self._tell_call(data, type_.removeprefix("tool.")))
            case _:
                pass

    def _extend(self, id_: str, text: str) -> Iterable[StreamResponse]:
        if not text:
            return
        is_known = id_ in self._artifacts
        artifact = self._artifacts.setdefault(id_, Artifact(artifact_id=id_, parts=[Part(text="")]))
        artifact.parts[0].text += text
        yield self._artifact_update(id_, text, append=is_known)

    def _complete(self, data: Json) -> StreamResponse:
        """The end of a text. If the client has something else, the whole text takes its place."""
        id_, whole = _artifact_id(data), data["text"]
        rest = self._texts.end(_key(data), whole)
        is_known = id_ in self._artifacts
        self._artifacts[id_] = Artifact(artifact_id=id_, parts=[Part(text=whole)])
        if rest is None or not is_known:
            return self._artifact_update(id_, whole, append=False, is_last=True)
        return self._artifact_update(id_, rest, append=True, is_last=True)

    def _add_output(self, data: Json) -> Iterable[StreamResponse]:
        value = (data.get("output") or {}).get("value")
        if value is not None:
            id_ = f"{data['assistantMessageID']}.output"
            artifact = Artifact(artifact_id=id_, name="output", parts=[data_part(value)])
            self._artifacts[id_] = artifact
            yield StreamResponse(
                artifact_update=TaskArtifactUpdateEvent(
                    task_id=self.ref.task_id,
                    context_id=self.ref.session_id,
                    artifact=artifact,
                    last_chunk=True,
                )
            )

    def _tell_call(self, data: Json, what: str) -> TaskStatus:
        told = {"callID": data["callID"], "status": what}
        told |= {"tool": data["tool"], "input": data["input"]} if what == "called" else {}
        return self._status(TaskState.TASK_STATE_WORKING, [data_part({"call": told})])

    def _status(self, state: TaskState, parts: Iterable[Part] = ()) -> TaskStatus:
        shown, status = list(parts), TaskStatus(state=state)
        status.timestamp.FromMilliseconds(self.changed_ms)
        if shown:
            message = Message(
                message_id=f"{self.ref.message_id}.{self.progress.rested or 'status'}",
                context_id=self.ref.session_id,
                task_id=self.ref.task_id,
                role=Role.ROLE_AGENT,
                parts=shown,
            )
            status.message.CopyFrom(message)
        return status

    def _update(self, status: TaskStatus) -> StreamResponse:
        return StreamResponse(
            status_update=TaskStatusUpdateEvent(
                task_id=self.ref.task_id, context_id=self.ref.session_id, status=status
            )
        )

    def _artifact_update(
        self, id_: str, text: str, *, append: bool, is_last: bool = False
    ) -> StreamResponse:
        return StreamResponse(
            artifact_update=TaskArtifactUpdateEvent(
                task_id=self.ref.task_id,
                context_id=self.ref.session_id,
                artifact=Artifact(artifact_id=id_, parts=[Part(text=text)]),
                append=append,
                last_chunk=is_last,
            )
        )


def data_part(data: Json) -> Part:
    """A part with JSON."""
    return Part(data=ParseDict(data, Value()))


def _ask_parts(asks: dict[str, Json]) -> list[Part]:
    """What people are asked, in words and as the whole request."""
    parts: list[Part] = []
    for ask in asks.values():
        if "questions" in ask:
            text = "\n".join(one["question"] for one in ask["questions"])
        else:
            text = f"May it {ask['action']}: {', '.join(ask['resources'])}?"
        parts += [Part(text=text), data_part({"ask": ask})]
    return parts


def _key(data: Json) -> tuple[str, str]:
    return data["assistantMessageID"], data["textID"]


def _artifact_id(data: Json) -> str:
    return f"{data['assistantMessageID']}.{data['textID']}"
