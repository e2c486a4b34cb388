"""Answers of the Responses API: the frames of a stream, the full body, errors."""

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any, TypeAlias

import orjson

from fairlead_cli.sim.openai_chat import error_body as chat_error
from fairlead_cli.sim.response import StreamFrames, wrap_block
from fairlead_cli.sim.script import (
    HostedTool,
    HttpRefusal,
    Script,
    SimRequest,
    count_tokens,
    split_text,
)
from fairlead_cli.sim.signatures import seal

Item: TypeAlias = dict[str, Any]
FrameBuilder: TypeAlias = Callable[..., bytes]

ID_PREFIX = "resp_"
SENDS_RETRY_AFTER = True
_CREATED = 1_700_000_000
_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
_TOO_LONG = (
    "Your input exceeds the context window of this model. Please adjust your input and try again."
)


def stream_frames(script: Script, request: SimRequest, answer_id: str) -> StreamFrames:
    numbers = count()

    def frame(kind: str, **fields: object) -> bytes:
        data = orjson.dumps({"type": kind, "sequence_number": next(numbers), **fields})
        return b"event: " + kind.encode() + b"\ndata: " + data + b"\n\n"

    unfinished = _response(script, request, answer_id) | {"status": "in_progress", "output": []}
    unfinished |= {"usage": None, "incomplete_details": None, "completed_at": None}
    head = (
        frame("response.created", response=unfinished),
        frame("response.in_progress", response=unfinished),
    )
    chunks = [
        chunk
        for index, item in enumerate(_items(script, answer_id))
        for chunk in _item_chunks(index, item, script, frame)
    ]
    final = _response(script, request, answer_id)
    error = {"code": "server_error", "message": "The simulated provider broke off"}
    failed = unfinished | {"status": "failed", "error": error}
    return StreamFrames(
        head=head,
        chunks=tuple(chunks),
        tail=(frame(f"response.{final['status']}", response=final),),
        malformed=b'event: response.output_text.delta\ndata: {"type":"response.outp\n\n',
        failure=frame("error", param=None, **error) + frame("response.failed", response=failed),
    )


def full_body(script: Script, request: SimRequest, answer_id: str) -> bytes:
    return orjson.dumps(_response(script, request, answer_id))


def error_body(refusal: HttpRefusal) -> bytes:
    """The same errors as on Chat Completions, with another text for a context overflow."""
    if refusal.code == "context_length_exceeded":
        return chat_error(HttpRefusal(refusal.status, _TOO_LONG, refusal.code))
    return chat_error(refusal)


def _items(script: Script, answer_id: str) -> Iterator[Item]:
    """The complete items of the answer, in order."""
    mark = answer_id[-12:]
    if script.reasoning:
        summary = [{"type": "summary_text", "text": script.reasoning}]
        sealed = {"encrypted_content": seal(script.reasoning)}
        yield {"type": "reasoning", "id": f"rs_{mark}", "summary": summary, **sealed}
    for index, tool in enumerate(script.hosted_tools):
        yield _hosted_item(tool, f"{mark}_{index}")
    if script.answer:
        text = {"type": "output_text", "text": script.answer, "annotations": [], "logprobs": []}
        status = "incomplete" if script.finish in _INCOMPLETE else "completed"
        head = {"type": "message", "id": f"msg_{mark}", "role": "assistant", "status": status}
        phase = "commentary" if script.calls else "final_answer"
        yield {**head, "content": [text], "phase": phase}
    for index, call in enumerate(script.calls):
        yield {
            "type": "function_call",
            "id": f"fc_{mark}_{index}",
            "call_id": f"call_{mark}_{index}",
            "name": call.name,
            "arguments": call.arguments,
            "status": "completed",
        }


def _hosted_item(tool: HostedTool, mark: str) -> Item:
    if tool.kind == "search":
        action = {"type": "search", "query": tool.input, "queries": [tool.input]}
        head = {"type": "web_search_call", "id": f"ws_{mark}", "status": "completed"}
        return {**head, "action": action}
    return {
        "type": "code_interpreter_call",
        "id": f"ci_{mark}",
        "status": "completed",
        "code": tool.input,
        "container_id": f"cntr_{mark}",
        "outputs": [{"type": "logs", "logs": tool.output}],
    }


def _item_chunks(index: int, item: Item, script: Script, frame: FrameBuilder) -> list[bytes]:
    """The chunks of one item. Frames must be built in order, because building numbers them."""
    position = {"item_id": item["id"], "output_index": index}
    match item["type"]:
        case "reasoning":
            return _reasoning_chunks(position, item, frame)
        case "message":
            return _message_chunks(position, item, split_text(script.answer, script.chunks), frame)
        case "function_call":
            return _call_chunks(position, item, frame)
        case kind:
            first_state = item | {"status": "in_progress"}
            states = ("in_progress", "searching" if kind == "web_search_call" else "interpreting")
            steps = [f"response.{kind}.{state}" for state in (*states, "completed")]
            frames = [
                _added_frame(position, first_state, frame),
                *(frame(step, **position) for step in steps),
            ]
            return [b"".join(frames) + _done_frame(position, item, frame)]


def _reasoning_chunks(position: Item, item: Item, frame: FrameBuilder) -> list[bytes]:
    text, part = item["summary"][0]["text"], item["summary"][0]
    place = position | {"summary_index": 0}
    lead = "response.reasoning_summary"
    first_state = item | {"summary": [], "encrypted_content": seal("")}
    opening = _added_frame(position, first_state, frame)
    opening += frame(f"{lead}_part.added", **place, part=part | {"text": ""})
    deltas = [frame(f"{lead}_text.delta", **place, delta=piece) for piece in split_text(text, None)]
    closing = frame(f"{lead}_text.done", **place, text=text)
    closing += frame(f"{lead}_part.done", **place, part=part)
    return wrap_block(opening, deltas, closing + _done_frame(position, item, frame))


def _message_chunks(
    position: Item, item: Item, texts: Sequence[str], frame: FrameBuilder
) -> list[bytes]:
    part, place = item["content"][0], position | {"content_index": 0}
    opening = _added_frame(position, item | {"content": [], "status": "in_progress"}, frame)
    opening += frame("response.content_part.added", **place, part=part | {"text": ""})
    lead = "response.output_text"
    deltas = [frame(f"{lead}.delta", **place, delta=piece, logprobs=[]) for piece in texts]
    closing = frame(f"{lead}.done", **place, text=part["text"], logprobs=[])
    closing += frame("response.content_part.done", **place, part=part)
    return wrap_block(opening, deltas, closing + _done_frame(position, item, frame))


def _call_chunks(position: Item, item: Item, frame: FrameBuilder) -> list[bytes]:
    lead, arguments = "response.function_call_arguments", item["arguments"]
    opening = _added_frame(position, item | {"arguments": "", "status": "in_progress"}, frame)
    deltas = [frame(f"{lead}.delta", **position, delta=piece) for piece in split_text(arguments, 2)]
    closing = frame(f"{lead}.done", **position, arguments=arguments, name=item["name"])
    return wrap_block(opening, deltas, closing + _done_frame(position, item, frame))


def _added_frame(position: Item, item: Item, frame: FrameBuilder) -> bytes:
    return frame("response.output_item.added", output_index=position["output_index"], item=item)


def _done_frame(position: Item, item: Item, frame: FrameBuilder) -> bytes:
    return frame("response.output_item.done", output_index=position["output_index"], item=item)


def _response(script: Script, request: SimRequest, answer_id: str) -> Item:
    reason = _INCOMPLETE.get(script.finish or "")
    return {
        "id": answer_id,
        "object": "response",
        "created_at": _CREATED,
        "completed_at": None if reason else _CREATED,
        "status": "incomplete" if reason else "completed",
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "instructions": None,
        "metadata": {},
        "model": request.model,
        "output": list(_items(script, answer_id)),
        "parallel_tool_calls": True,
        "store": False,
        "tool_choice": "auto",
        "tools": [],
        "usage": _usage(script, request),
    }


def _usage(script: Script, request: SimRequest) -> Item:
    counts = count_tokens(script, request)
    return {
        "input_tokens": counts.prompt,
        "input_tokens_details": {"cached_tokens": counts.cached, "cache_write_tokens": 0},
        "output_tokens": counts.output,
        "output_tokens_details": {"reasoning_tokens": counts.reasoning},
        "total_tokens": counts.prompt + counts.output,
    }
