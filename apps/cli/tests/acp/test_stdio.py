"""Lines from an editor: what is no message is answered with an error of the protocol."""

import asyncio
import json
from typing import Any

import pytest
from acp import RequestError
from acp import schema as s
from acp.helpers import image_block, resource_block, resource_link_block, text_block

from fairlead_cli.acp.protocol_errors import protocol_error
from fairlead_cli.acp.stdio_transport import StdioTransport
from fairlead_cli.acp.translation.prompt_blocks import join_blocks
from fairlead_client import ServerAway
from fairlead_schema.errors import InvalidRequest, SessionNotFound, Unauthorized


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

    assert prompt.text == "look at\nplease"
    assert [file.uri for file in prompt.files] == [
        "file:///work/b.py",
        "data:image/png;base64,AAAA",
        "data:text/plain,x%20%3D%201%0A",
    ]


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
