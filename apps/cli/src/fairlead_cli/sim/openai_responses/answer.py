"""Responses answers: the frames of a stream, the answer in one piece, errors."""

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any, TypeAlias

import orjson

from fairlead_cli.sim.chat import error as chat_error
from fairlead_cli.sim.response import Reel, block
from fairlead_cli.sim.script import Ask, Hosted, Refusal, Script, pieces, tallied
from fairlead_cli.sim.seal import closed

Item: TypeAlias = dict[str, Any]
Framed: TypeAlias = Callable[..., bytes]

PREFIX = "resp_"
ADVISES = True
_CREATED = 1_700_000_000
_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
_TOO_LONG = (
    "Your input exceeds the context window of this model. Please adjust your input and try again."
)


def reel(script: Script, ask: Ask, answer_id: str) -> Reel:
    numbers = count()

    def frame(kind: str, **fields: object) -> bytes:
        data = orjson.dumps({"type": kind, "sequence_number": next(numbers), **fields})
        return b"event: " + kind.encode() + b"\ndata: " + data + b"\n\n"

    waiting = _response(script, ask, answer_id) | {"status": "in_progress", "output": []}
    waiting |= {"usage": None, "incomplete_details": None, "completed_at": None}
    head = (
        frame("response.created", response=waiting),
        frame("response.in_progress", response=waiting),
    )
    chunks = [
        chunk
        for index, item in enumerate(_items(script, answer_id))
        for chunk in _streamed(index, item, script, frame)
    ]
    final = _response(script, ask, answer_id)
    fault = {"code": "server_error", "message": "The simulated provider broke off"}
    failed = waiting | {"status": "failed", "error": fault}
    return Reel(
        head=head,
        chunks=tuple(chunks),
        tail=(frame(f"response.{final['status']}", response=final),),
        malformed=b'event: response.output_text.delta\ndata: {"type":"response.outp\n\n',
        failure=frame("error", param=None, **fault) + frame("response.failed", response=failed),
    )


def whole(script: Script, ask: Ask, answer_id: str) -> bytes:
    return orjson.dumps(_response(script, ask, answer_id))


def error(refusal: Refusal) -> bytes:
    """The same errors as on Chat, with other words for an overflow."""
    if refusal.code == "context_length_exceeded":
        return chat_error(Refusal(refusal.status, _TOO_LONG, refusal.code))
    return chat_error(refusal)


def _items(script: Script, answer_id: str) -> Iterator[Item]:
    """The whole items of the answer, in order."""
    mark = answer_id[-12:]
    if script.reasoning:
        summary = [{"type": "summary_text", "text": script.reasoning}]
        sealed = {"encrypted_content": closed(script.reasoning)}
        yield {"type": "reasoning", "id": f"rs_{mark}", "summary": summary, **sealed}
    for at, hosted in enumerate(script.hosted):
        yield _hosted(hosted, f"{mark}_{at}")
    if script.answer:
        text = {"type": "output_text", "text": script.answer, "annotations": [], "logprobs": []}
        status = "incomplete" if script.finish in _INCOMPLETE else "completed"
        head = {"type": "message", "id": f"msg_{mark}", "role": "assistant", "status": status}
        phase = "commentary" if script.calls else "final_answer"
        yield {**head, "content": [text], "phase": phase}
    for at, call in enumerate(script.calls):
        yield {
            "type": "function_call",
            "id": f"fc_{mark}_{at}",
            "call_id": f"call_{mark}_{at}",
            "name": call.name,
            "arguments": call.arguments,
            "status": "completed",
        }


def _hosted(hosted: Hosted, mark: str) -> Item:
    if hosted.kind == "search":
        action = {"type": "search", "query": hosted.asked, "queries": [hosted.asked]}
        head = {"type": "web_search_call", "id": f"ws_{mark}", "status": "completed"}
        return {**head, "action": action}
    return {
        "type": "code_interpreter_call",
        "id": f"ci_{mark}",
        "status": "completed",
        "code": hosted.asked,
        "container_id": f"cntr_{mark}",
        "outputs": [{"type": "logs", "logs": hosted.found}],
    }


def _streamed(index: int, item: Item, script: Script, frame: Framed) -> list[bytes]:
    """The chunks of one item; its frames are numbered in the order in which they are made."""
    at = {"item_id": item["id"], "output_index": index}
    match item["type"]:
        case "reasoning":
            return _reasoning(at, item, frame)
        case "message":
            return _message(at, item, pieces(script.answer, script.chunks), frame)
        case "function_call":
            return _call(at, item, frame)
        case kind:
            began = item | {"status": "in_progress"}
            states = ("in_progress", "searching" if kind == "web_search_call" else "interpreting")
            steps = [f"response.{kind}.{state}" for state in (*states, "completed")]
            frames = [_added(at, began, frame), *(frame(step, **at) for step in steps)]
            return [b"".join(frames) + _done(at, item, frame)]


def _reasoning(at: Item, item: Item, frame: Framed) -> list[bytes]:
    text, part = item["summary"][0]["text"], item["summary"][0]
    place = at | {"summary_index": 0}
    lead = "response.reasoning_summary"
    began = item | {"summary": [], "encrypted_content": closed("")}
    opening = _added(at, began, frame)
    opening += frame(f"{lead}_part.added", **place, part=part | {"text": ""})
    told = [frame(f"{lead}_text.delta", **place, delta=one) for one in pieces(text, None)]
    closing = frame(f"{lead}_text.done", **place, text=text)
    closing += frame(f"{lead}_part.done", **place, part=part)
    return block(opening, told, closing + _done(at, item, frame))


def _message(at: Item, item: Item, texts: Sequence[str], frame: Framed) -> list[bytes]:
    part, place = item["content"][0], at | {"content_index": 0}
    opening = _added(at, item | {"content": [], "status": "in_progress"}, frame)
    opening += frame("response.content_part.added", **place, part=part | {"text": ""})
    said = "response.output_text"
    told = [frame(f"{said}.delta", **place, delta=one, logprobs=[]) for one in texts]
    closing = frame(f"{said}.done", **place, text=part["text"], logprobs=[])
    closing += frame("response.content_part.done", **place, part=part)
    return block(opening, told, closing + _done(at, item, frame))


def _call(at: Item, item: Item, frame: Framed) -> list[bytes]:
    lead, arguments = "response.function_call_arguments", item["arguments"]
    opening = _added(at, item | {"arguments": "", "status": "in_progress"}, frame)
    told = [frame(f"{lead}.delta", **at, delta=one) for one in pieces(arguments, 2)]
    closing = frame(f"{lead}.done", **at, arguments=arguments, name=item["name"])
    return block(opening, told, closing + _done(at, item, frame))


def _added(at: Item, item: Item, frame: Framed) -> bytes:
    return frame("response.output_item.added", output_index=at["output_index"], item=item)


def _done(at: Item, item: Item, frame: Framed) -> bytes:
    return frame("response.output_item.done", output_index=at["output_index"], item=item)


def _response(script: Script, ask: Ask, answer_id: str) -> Item:
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
        "model": ask.model,
        "output": list(_items(script, answer_id)),
        "parallel_tool_calls": True,
        "store": False,
        "tool_choice": "auto",
        "tools": [],
        "usage": _usage(script, ask),
    }


def _usage(script: Script, ask: Ask) -> Item:
    tally = tallied(script, ask)
    return {
        "input_tokens": tally.prompt,
        "input_tokens_details": {"cached_tokens": tally.cached, "cache_write_tokens": 0},
        "output_tokens": tally.output,
        "output_tokens_details": {"reasoning_tokens": tally.thought},
        "total_tokens": tally.prompt + tally.output,
    }
