"""Frames of an answer with native content, for each protocol, and the events that they become."""

from typing import Any

import orjson
from libs.session.tests.hosted.native_answers import AFTER, Native

from fairlead_llm.protocol import PROTOCOLS
from fairlead_llm.sse import Frame
from fairlead_schema.provider.events import ProviderEvent


def play(protocol: str, frames: list[Native | bytes]) -> list[ProviderEvent]:
    """The events of a whole answer."""
    reader = PROTOCOLS[protocol]
    state, events = reader.start(), list[ProviderEvent]()
    for frame in frames:
        data = frame if isinstance(frame, bytes) else orjson.dumps(frame)
        state, new_events = reader.step(state, Frame(data))
        events += new_events
    return [*events, *reader.finish(state)]


def answer(
    protocol: str, native: list[Native], step: dict[str, Any] | None = None
) -> list[ProviderEvent]:
    """An answer that has this content, and then a text. `step` is metadata of the whole step."""
    build = {
        "anthropic-messages": _anthropic,
        "openai-responses": _responses,
        "gemini": _gemini,
        "openai-chat": _chat,
    }
    return play(protocol, build[protocol](native, step or {}))


def _anthropic(native: list[Native], _step: dict[str, Any]) -> list[Native | bytes]:
    frames: list[Native | bytes] = [{"type": "message_start", "message": {"id": "msg_1"}}]
    for index, block in enumerate([*native, {"type": "text", "text": AFTER}]):
        frames.append({"type": "content_block_start", "index": index, "content_block": block})
        frames.append({"type": "content_block_stop", "index": index})
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
    return [*frames, end, {"type": "message_stop"}]


def _responses(native: list[Native], _step: dict[str, Any]) -> list[Native | bytes]:
    text = [{"type": "output_text", "text": AFTER}]
    message = {"type": "message", "id": "item_9", "role": "assistant", "content": text}
    frames: list[Native | bytes] = []
    for index, item in enumerate([*native, message]):
        whole = {"type": "message", **item}
        at = {"output_index": index, "item": whole}
        frames += [
            {"type": "response.output_item.added", **at},
            {"type": "response.output_item.done", **at},
        ]
    return [*frames, {"type": "response.completed", "response": {"id": "r"}}]


def _gemini(native: list[Native], step: dict[str, Any]) -> list[Native | bytes]:
    content = {"role": "model", "parts": [*native, {"text": AFTER}]}
    return [{"candidates": [{"content": content, "finishReason": "STOP", **step}]}]


def _chat(native: list[Native], step: dict[str, Any]) -> list[Native | bytes]:
    deltas = [{"reasoning_details": native}] if native else []
    chunks = [{"choices": [{"delta": delta}]} for delta in (*deltas, {"content": AFTER})]
    end = {"choices": [{"delta": {}, "finish_reason": "stop"}], **step}
    return [*chunks, end, b"[DONE]"]
