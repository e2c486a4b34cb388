"""Lines from an editor: what is no message is answered with an error of the protocol."""

import asyncio
import json
import logging
from typing import Any

import pytest
from acp import RequestError
from acp import schema as s
from acp.helpers import image_block, resource_block, resource_link_block, text_block
from pydantic import ValidationError

from fairlead_cli.acp.log_lines import OneLine
from fairlead_cli.acp.protocol_errors import protocol_error
from fairlead_cli.acp.stdio_transport import StdioTransport, explain_answer, parse_line
from fairlead_cli.acp.translation.prompt_blocks import (
    file_name,
    join_blocks,
    large_content,
    show_prompt,
)
from fairlead_client import ServerAway
from fairlead_schema.errors import InvalidRequest, SessionNotFound, Unauthorized
from fairlead_schema.prompt import FileInput


async def receive(sent: bytes) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The messages that a transport passes on, and what it answers by itself."""
    reader, answers = asyncio.StreamReader(), asyncio.StreamReader()

    async def serve(other: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers.feed_data(await other.read())
        answers.feed_eof()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        reader.feed_data(sent)
        reader.feed_eof()
        transport, passed = StdioTransport(reader, writer, line_bytes_max=1000), []
        while (message := await transport.receive()) is not None:
            passed.append(message)
        await transport.close()
        lines = (await answers.read()).splitlines()
    return passed, [json.loads(line) for line in lines]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{nonsense", -32700),
        (b"\xff\xfe", -32700),
        (b"[" * 100_000, -32600),
        (b"[]", -32600),
        (b'"text"', -32600),
        (b'{"id": 1, "method": "initialize"}', -32600),
        (b'{"jsonrpc": "2.0"}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": 5}', -32600),
        (b'{"jsonrpc": "2.0", "x": "' + b"x" * 2000 + b'"}', -32600),
    ],
)
async def test_a_bad_line_is_refused_and_the_next_one_is_served(line: bytes, code: int) -> None:
    good = {"jsonrpc": "2.0", "id": 1, "method": "initialize"}

    passed, answers = await receive(line + b"\n\n" + json.dumps(good).encode() + b"\n")

    assert passed == [good]
    assert [(one["id"], one["error"]["code"]) for one in answers] == [(None, code)]


def test_blocks_of_a_prompt_become_text_and_files() -> None:
    text = resource_block(s.TextResourceContents(uri="file:///work/a.py", text="x = 1\n"))
    prompt = join_blocks(
        [
            text_block("look at"),
            resource_link_block("b.py", "file:///work/b.py"),
            image_block("AAAA", "image/png"),
            text,
            text_block("please"),
        ]
    )

    assert prompt.text == "look at b.py a.py please"
    assert [file.uri for file in prompt.files] == [
        "file:///work/b.py",
        "data:image/png;base64,AAAA",
        "data:text/plain,x%20%3D%201%0A",
    ]


def test_the_name_of_a_mentioned_file_stays_where_the_person_wrote_it() -> None:
    prompt = join_blocks(
        [
            text_block("compare "),
            resource_link_block("a.py", "file:///work/a.py"),
            text_block(" with "),
            resource_link_block("b.py", "file:///work/b.py"),
            text_block(", please"),
            text_block("now"),
        ]
    )

    assert prompt.text == "compare a.py with b.py, please\nnow"


def test_half_a_character_becomes_a_sign_instead_of_a_failure() -> None:
    line = (
        rb'{"jsonrpc": "2.0", "id": 1, "method": "x", "params": {"a": "\ud83d \ud83d\ude00 \\ud"}}'
    )

    message = parse_line(line)

    assert isinstance(message, dict)
    assert message["params"] == {"a": "\ufffd \U0001f600 \\ud"}


def test_an_invalid_request_is_answered_with_a_sentence_and_without_its_input() -> None:
    with pytest.raises(ValidationError) as failed:
        s.PromptRequest.model_validate({"sessionId": 5, "prompt": "x" * 1000})
    refusal = RequestError.invalid_params({"errors": failed.value.errors()})

    answer = explain_answer({"id": 1, "error": refusal.to_error_obj()})

    assert answer["error"]["message"] == "sessionId: Input should be a valid string"
    assert "xxx" not in json.dumps(answer)
    assert [one["field"] for one in answer["error"]["data"]["errors"]] == ["sessionId", "prompt"]


def test_a_large_file_is_taken_out_of_the_prompt() -> None:
    small, large, text = join_blocks(
        [
            image_block("AAAA", "image/png"),
            image_block("AAAA" * 20_000, "image/png"),
            resource_block(s.TextResourceContents(uri="file:///a.py", text="ä" * 70_000)),
        ]
    ).files

    assert large_content(small) is None
    assert large_content(large) == bytes(60_000)
    assert file_name(large) == "file.png"
    assert large_content(text) == ("ä" * 70_000).encode()
    with pytest.raises(RequestError, match="not valid base64"):
        large_content(FileInput(uri=f"data:image/png;base64,{'@' * 99_999}"))


def test_a_prompt_of_the_log_is_shown_with_its_files() -> None:
    files = [
        {"uri": "data:image/png;base64,AAAA", "mime": "image/png"},
        {"uri": "data:audio/wav;base64,AAAA", "mime": "audio/wav"},
        {"uri": "data:text/plain,x", "mime": "text/plain", "name": "a.py"},
        {"uri": "file:///work/b.py", "mime": "text/plain", "name": "b.py"},
    ]

    blocks = show_prompt({"text": "look at a.py", "files": files})

    assert [block.type for block in blocks] == ["text", "image", "audio", "resource_link"]
    assert [block.type for block in show_prompt({"text": ""})] == []


def test_a_log_line_is_one_line_without_a_traceback() -> None:
    info = (ValueError, ValueError("first\nsecond"), None)
    record = logging.LogRecord("acp", logging.ERROR, "", 1, "Unhandled %s", ("x",), info)

    assert OneLine().format(record) == "fairlead acp: Unhandled x: ValueError: first second"


def test_an_empty_prompt_is_refused() -> None:
    with pytest.raises(RequestError) as refused:
        join_blocks([text_block("  ")])

    assert refused.value.code == -32602


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Unauthorized("The token is unknown"), -32000),
        (SessionNotFound("ses_1"), -32002),
        (InvalidRequest("too short"), -32602),
        (ServerAway("http://x", "refused", was_sent=False), -32603),
    ],
)
def test_a_refusal_becomes_a_typed_error_with_its_sentence(error: Any, code: int) -> None:  # noqa: ANN401
    found = protocol_error(error)

    assert (found.code, str(found)) == (code, str(error))
