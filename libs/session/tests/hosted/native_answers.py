"""Answers with hosted content in the form of each provider, one for each row of the tables.

`SECRET` is only for the provider that made it, `LONG` may leave an old turn, `PLAIN` is readable.
"""

from typing import Any, Final, TypeAlias

Native: TypeAlias = dict[str, Any]

SECRET: Final = "only-the-provider-reads-this"  # noqa: S105 - no password
PLAIN: Final = "the-answer-is-42"
LONG: Final = f"{PLAIN} {'x' * 6000}"
AFTER: Final = "That is what I found."


def _hosted(type_: str, content: object, tool: str = "server_tool_use") -> list[Native]:
    """A call of the Messages API and its result."""
    call = {"type": tool, "id": "srv_1", "name": "hosted", "input": {"query": "q"}}
    more = {"server_name": "s"} if tool == "mcp_tool_use" else {}
    return [call | more, {"type": type_, "tool_use_id": "srv_1", "content": content}]


def _page(data: str, *, cited: bool = False) -> Native:
    source = {"type": "text", "media_type": "text/plain", "data": data}
    document = {"type": "document", "source": source, "citations": {"enabled": cited}}
    return {"type": "web_fetch_result", "url": "https://a.test", "content": document}


def _execution(kind: str) -> Native:
    return {"type": kind, "stdout": LONG, "stderr": "", "return_code": 0, "content": []}


ANTHROPIC: Final[dict[str, list[Native]]] = {
    "web_search_tool_result": _hosted(
        "web_search_tool_result",
        [{"type": "web_search_result", "url": PLAIN, "encrypted_content": SECRET + LONG}],
    ),
    "web_fetch_tool_result": _hosted("web_fetch_tool_result", _page(LONG)),
    "code_execution_tool_result": _hosted(
        "code_execution_tool_result", _execution("code_execution_result")
    ),
    "bash_code_execution_tool_result": _hosted(
        "bash_code_execution_tool_result", _execution("bash_code_execution_result")
    ),
    "text_editor_code_execution_tool_result": _hosted(
        "text_editor_code_execution_tool_result",
        {"type": "text_editor_code_execution_view_result", "file_type": "text", "content": LONG},
    ),
    "mcp_tool_result": _hosted(
        "mcp_tool_result", [{"type": "text", "text": LONG}], tool="mcp_tool_use"
    ),
    "tool_search_tool_result": _hosted(
        "tool_search_tool_result",
        {"type": "tool_search_tool_search_result", "tool_references": [{"tool_name": SECRET}]},
    ),
    "advisor_tool_result": _hosted(
        "advisor_tool_result", {"type": "advisor_result", "text": PLAIN}
    ),
    "compaction": [{"type": "compaction", "content": PLAIN, "encrypted_content": SECRET}],
    "container_upload": [{"type": "container_upload", "file_id": SECRET}],
    "fallback": [{"type": "fallback", "from": {"model": SECRET}, "to": {"model": "b"}}],
    "thinking": [{"type": "thinking", "thinking": PLAIN, "signature": SECRET}],
    "redacted_thinking": [{"type": "redacted_thinking", "data": SECRET}],
    "citations": [
        {
            "type": "text",
            "text": PLAIN,
            "citations": [{"cited_text": "a", "encrypted_index": SECRET}],
        }
    ],
}

_ITEM: Final = {"id": "item_1", "status": "completed"}
RESPONSES: Final[dict[str, list[Native]]] = {
    "web_search_call": [
        _ITEM | {"type": "web_search_call", "action": {"type": "search", "query": PLAIN}}
    ],
    "file_search_call": [
        _ITEM
        | {
            "type": "file_search_call",
            "queries": ["q"],
            "results": [{"file_id": "f", "filename": "a.txt", "score": 1, "text": LONG}],
        }
    ],
    "code_interpreter_call": [
        _ITEM
        | {
            "type": "code_interpreter_call",
            "code": "print(42)",
            "container_id": "c",
            "outputs": [
                {"type": "logs", "logs": LONG},
                {"type": "image", "url": "data:image/png;base64," + SECRET},
            ],
        }
    ],
    "mcp_call": [
        _ITEM
        | {
            "type": "mcp_call",
            "server_label": "s",
            "name": "hosted",
            "arguments": "{}",
            "output": LONG,
        }
    ],
    "mcp_list_tools": [
        _ITEM | {"type": "mcp_list_tools", "server_label": "s", "tools": [{"name": SECRET}]}
    ],
    "mcp_approval_request": [
        _ITEM
        | {
            "type": "mcp_approval_request",
            "server_label": "s",
            "name": "hosted",
            "arguments": "{}",
            "nonce": SECRET,
        }
    ],
    "image_generation_call": [
        _ITEM | {"type": "image_generation_call", "revised_prompt": PLAIN, "result": SECRET * 300}
    ],
    "shell_call": [
        _ITEM
        | {
            "type": "shell_call",
            "call_id": "call_1",
            "action": {"commands": ["ls"]},
            "environment": {"type": "container_reference", "container_id": SECRET},
        }
    ],
    "shell_call_output": [
        _ITEM
        | {
            "type": "shell_call",
            "call_id": "call_1",
            "action": {"commands": ["ls"]},
            "environment": {"type": "container_reference", "container_id": SECRET},
        },
        {
            "id": "item_2",
            "type": "shell_call_output",
            "call_id": "call_1",
            "output": [
                {"stdout": LONG, "stderr": LONG, "outcome": {"type": "exit", "exit_code": 0}}
            ],
        },
    ],
    "tool_search_call": [
        _ITEM
        | {
            "type": "tool_search_call",
            "call_id": "call_1",
            "execution": "server",
            "arguments": {"query": "q"},
            "found": SECRET,
        }
    ],
    "tool_search_output": [
        _ITEM
        | {
            "type": "tool_search_call",
            "call_id": "call_1",
            "execution": "server",
            "arguments": {"query": "q"},
        },
        {
            "id": "item_2",
            "type": "tool_search_output",
            "call_id": "call_1",
            "execution": "server",
            "tools": [{"name": SECRET}],
        },
    ],
    "compaction": [{"id": "item_1", "type": "compaction", "encrypted_content": SECRET}],
    "reasoning": [
        {
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": PLAIN}],
            "encrypted_content": SECRET,
        }
    ],
    "annotations": [
        {
            "role": "assistant",
            "content": [
                {
                    "type": "output_text",
                    "text": PLAIN,
                    "annotations": [{"type": "url_citation", "url": SECRET}],
                }
            ],
        }
    ],
}

_CODE: Final = {"executableCode": {"language": "PYTHON", "code": "print(42)"}}
GEMINI: Final[dict[str, list[Native]]] = {
    "codeExecutionResult": [
        _CODE,
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": LONG}},
    ],
    "toolResponse": [
        {"toolCall": {"toolType": "GOOGLE_SEARCH", "id": "t", "args": {"query": "q"}}},
        {
            "toolResponse": {"toolType": "GOOGLE_SEARCH", "id": "t", "response": {"found": PLAIN}},
            "thoughtSignature": SECRET,
        },
    ],
    "inlineData": [{"inlineData": {"mimeType": "image/png", "data": SECRET}}],
    "fileData": [{"fileData": {"mimeType": "image/png", "fileUri": SECRET}}],
    "thoughtSignature": [{"text": PLAIN, "thought": True, "thoughtSignature": SECRET}],
    "textSignature": [{"text": PLAIN, "thoughtSignature": SECRET}],
}
"""The other rows are metadata of the step, which has no part."""

ANSWERS: Final = {
    "anthropic-messages": ANTHROPIC,
    "openai-responses": RESPONSES,
    "gemini": GEMINI,
    "openai-chat": {
        "reasoning_details": [{"type": "reasoning.encrypted", "data": SECRET, "index": 0}]
    },
}
