"""One tool call as the part that the terminal client draws."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from fairlead_schema.message import ToolBlock
from fairlead_schema.tools.content import (
    DECLINED,
    CompletedCall,
    FailedCall,
    FileContent,
    PendingCall,
    RunningCall,
    TextContent,
    ToolContent,
)

Json: TypeAlias = dict[str, Any]
_WITH_FILE_PATH: Final = frozenset({"read", "write", "edit"})
_REJECTED: Final = "The user rejected permission to use this tool"
_DISMISSED: Final = "The user dismissed this question"
"""The client strikes a call with one of these texts through, instead of showing it as a failure."""


def tool_part(block: ToolBlock) -> Json:
    """The part without its ids."""
    return {"type": "tool", "tool": block.name, "callID": block.id, "state": _state(block)}


def is_declined(block: ToolBlock) -> bool:
    """Whether a person said no to the call."""
    return isinstance(block.state, FailedCall) and block.state.error.code == DECLINED


def _state(block: ToolBlock) -> Json:
    state, time = block.state, block.time
    start = time.ran or time.created
    match state:
        case PendingCall():
            return {"status": "pending", "input": {}, "raw": state.input}
        case RunningCall():
            return {
                "status": "running",
                "input": _input(block.name, state.input),
                "metadata": _metadata(block.name, state.structured, state.content),
                "time": {"start": start},
            }
        case CompletedCall():
            done: Json = {
                "status": "completed",
                "input": _input(block.name, state.input),
                "output": _text(state.content),
                "title": _title(block.name, state.input),
                "metadata": _metadata(block.name, state.structured, state.content)
                | _FINAL.get(block.name, _nothing)(state.input, state.structured),
                "time": {"start": start, "end": time.completed or start},
            }
            files = [_attachment(item) for item in state.content if isinstance(item, FileContent)]
            return done | ({"attachments": files} if files else {})
        case FailedCall():
            return {
                "status": "error",
                "input": _input(block.name, state.input),
                "error": _error(block, state),
                "metadata": _metadata(block.name, state.structured, state.content),
                "time": {"start": start, "end": time.completed or start},
            }


def _input(name: str, given: Json) -> Json:
    """The input under the names that the client knows."""
    if name in _WITH_FILE_PATH and "path" in given:
        return {"filePath": given["path"]} | {k: v for k, v in given.items() if k != "path"}
    if name == "task" and "agent" in given:
        return given | {"subagent_type": given["agent"]}
    return given


def _title(name: str, given: Json) -> str:
    for key in ("description", "command", "path", "pattern", "url", "query", "name"):
        if isinstance(value := given.get(key), str):
            return value
    return "" if name else name


def _error(block: ToolBlock, state: FailedCall) -> str:
    if not is_declined(block):
        return state.error.message
    return _DISMISSED if block.name == "question" else _REJECTED


def _metadata(name: str, structured: Json, content: tuple[ToolContent, ...]) -> Json:
    if name == "bash":
        return {**structured, "output": _text(content)}
    if name == "task" and "sessionID" in structured:
        return {**structured, "sessionId": structured["sessionID"]}
    return dict(structured)


def _nothing(_input: Json, _structured: Json) -> Json:
    return {}


def _edit_metadata(_input: Json, structured: Json) -> Json:
    patches = [file.get("patch") for file in _objects(structured, "files")]
    diff = "\n".join(patch for patch in patches if isinstance(patch, str))
    return {"diff": diff} if diff else {}


def _patch_metadata(_input: Json, structured: Json) -> Json:
    """The files of a patch with their lines, which are in a list of their own."""
    diffs = [*_objects(structured, "files")]
    changed = []
    for index, change in enumerate(_objects(structured, "applied")):
        lines = diffs[index] if index < len(diffs) else {}
        target = change.get("target", change.get("resource", ""))
        moved = {"movePath": target} if "origin" in change else {}
        changed.append(
            {
                "type": change.get("type", "update"),
                "relativePath": change.get("resource", ""),
                "filePath": change.get("origin", target),
                "patch": lines.get("patch", ""),
                "additions": lines.get("additions", 0),
                "deletions": lines.get("deletions", 0),
                **moved,
            }
        )
    return {"files": changed}


def _count_as(name: str) -> Callable[[Json, Json], Json]:
    return lambda _input, structured: (
        {name: len(_objects(structured, "value"))} if "value" in structured else {}
    )


def _search_metadata(given: Json, structured: Json) -> Json:
    found = {"numResults": given.get("numResults"), "provider": structured.get("provider")}
    return {key: value for key, value in found.items() if value is not None}


def _objects(structured: Json, key: str) -> list[Json]:
    found = structured.get(key)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


_FINAL: Final[Mapping[str, Callable[[Json, Json], Json]]] = {
    "write": lambda _input, _structured: {"diagnostics": {}},
    "edit": _edit_metadata,
    "apply_patch": _patch_metadata,
    "glob": _count_as("count"),
    "grep": _count_as("matches"),
    "websearch": _search_metadata,
    "todowrite": lambda given, structured: {
        "todos": structured.get("todos", given.get("todos", []))
    },
    "question": lambda _input, structured: {"answers": structured.get("answers", [])},
}


def _text(content: tuple[ToolContent, ...]) -> str:
    return "\n".join(item.text for item in content if isinstance(item, TextContent))


def _attachment(item: FileContent) -> Json:
    name = {} if item.name is None else {"filename": item.name}
    return {"type": "file", "mime": item.mime, "url": item.uri, **name}
