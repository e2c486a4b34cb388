"""Tool calls as an editor draws them: kind, title, places in files, changes and output. Pure."""

from collections.abc import Mapping
from posixpath import isabs, join, normpath
from typing import Any, Final, TypeAlias

from acp import schema
from acp.helpers import text_block, tool_content, tool_diff_content
from acp.schema import ToolCallLocation, ToolKind

Json: TypeAlias = dict[str, Any]
CallContent: TypeAlias = (
    schema.ContentToolCallContent | schema.FileEditToolCallContent | schema.TerminalToolCallContent
)

KINDS: Final[Mapping[str, ToolKind]] = {
    "read": "read",
    "write": "edit",
    "edit": "edit",
    "apply_patch": "edit",
    "bash": "execute",
    "glob": "search",
    "grep": "search",
    "webfetch": "fetch",
    "websearch": "fetch",
    "task": "think",
    "todowrite": "think",
}
_TITLE_KEYS: Final = ("description", "command", "path", "pattern", "url", "query", "name")
_TITLE_LENGTH_MAX: Final = 200


def kind_of(tool: str) -> ToolKind:
    """The kind of a tool or of an action that needs a permission."""
    return KINDS.get(tool, "other")


def title_of(tool: str, given: Json) -> str:
    """One line that says what the call does."""
    for key in _TITLE_KEYS:
        if isinstance(value := given.get(key), str) and value:
            line = value.splitlines()[0] if value.strip() else value
            return f"{tool}: {line[:_TITLE_LENGTH_MAX]}"
    return tool


def absolute(directory: str, path: str) -> str:
    """A path of the session's location. Editors open absolute paths alone."""
    return normpath(path if isabs(path) else join(directory, path))


def locations_of(
    directory: str, given: Json, structured: Json | None = None
) -> list[ToolCallLocation]:
    """The files that a call touches, so that the editor can follow."""
    paths = [given["path"]] if isinstance(given.get("path"), str) else []
    files = (structured or {}).get("files") or (structured or {}).get("applied") or []
    for file in files if isinstance(files, list) else []:
        name = (file.get("file") or file.get("resource")) if isinstance(file, dict) else file
        if isinstance(name, str):
            paths.append(name)
    line = given.get("offset") if isinstance(given.get("offset"), int) else None
    unique = dict.fromkeys(absolute(directory, path) for path in paths)
    return [ToolCallLocation(path=path, line=line) for path in unique]


def change_of(directory: str, tool: str, given: Json) -> list[CallContent]:
    """The change that a call makes to a file, for the tools whose input says it."""
    match tool, given:
        case "edit", {"path": str(path), "oldString": str(old), "newString": str(new)}:
            return [tool_diff_content(absolute(directory, path), new, old)]
        case "write", {"path": str(path), "content": str(content)}:
            return [tool_diff_content(absolute(directory, path), content)]
        case "apply_patch", {"patchText": str(patch)}:
            return [tool_content(text_block(f"```diff\n{patch}\n```"))]
        case _:
            return []


def output_of(content: object) -> list[CallContent]:
    """The text of a call's output. Files in it are named."""
    shown: list[CallContent] = []
    for item in content if isinstance(content, list | tuple) else ():
        match item:
            case {"type": "text", "text": str(text)} if text:
                shown.append(tool_content(text_block(text)))
            case {"type": "file", "mime": str(mime)}:
                shown.append(tool_content(text_block(f"[{item.get('name') or 'file'}: {mime}]")))
            case _:
                pass
    return shown
