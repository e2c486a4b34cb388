"""The commands against a stack: what they send, what they print, and the shape of their JSON."""

import asyncio
import io
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import pytest_asyncio
from textual.widgets import DataTable, Static

from fairlead_cli.__main__ import main
from fairlead_cli.command_line.exit_codes import INTERRUPTED, NO_ACCESS, REFUSED
from fairlead_cli.top.app import TopApp
from fairlead_cli.top.look import SessionObserver
from fairlead_client.async_client.http_connection import AsyncHttpConnection
from fairlead_testing.stack import Stack

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]
GOLDEN = Path(__file__).parent / "command_line/json_shapes.json"
SLOW = "[[sim: chunks=120 delay_ms=500]] go"
ASK = """[[sim: tool=read args='{"path": ".env"}' ; answer='I have read it.']]"""
TIMEOUT_S = 30.0


class Printed(NamedTuple):
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass(frozen=True)
class Terminal:
    """Runs commands in this process, in a thread of their own, as a person would."""

    up: Stack
    place: Path

    async def run(self, *argv: str, stdin: bytes = b"", token: str | None = None) -> Printed:
        key = token or self.up.up.token or ""
        line = [*argv, "--http", self.up.up.http, "--token", key]
        return await asyncio.to_thread(_run, line, stdin)

    async def json(self, *argv: str, stdin: bytes = b"") -> list[Any]:
        """The lines of a command that succeeds. Nothing goes to standard error."""
        printed = await self.run(*argv, "--json", stdin=stdin)
        assert (printed.code, printed.err) == (0, ""), printed
        return printed.lines

    async def asking_session(self) -> str:
        """A session that waits for a permission."""
        (self.place / ".env").write_text("COLOUR=blue\n")
        session = await self.up.client.create(directory=str(self.place))
        await self.up.client.prompt(session, ASK)
        await self.up.until(session.id, "permission.asked")
        # The list of all asks is a moment behind the log.
        while not any(ask.session_id == session.id for ask in await self.up.client.permissions()):
            await asyncio.sleep(0.05)
        return session.id


def _run(argv: list[str], stdin: bytes) -> Printed:
    out, err = io.StringIO(), io.StringIO()
    before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(stdin))
    try:
        with redirect_stdout(out), redirect_stderr(err):
            code = main(argv)
    finally:
        sys.stdin = before
    return Printed(code, out.getvalue(), err.getvalue())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def terminal(up: Stack, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Terminal]:
    place = tmp_path_factory.mktemp("work")
    for parent in (place, *place.parents[:2]):
        parent.chmod(0o755)
    yield Terminal(up, place)


def shape(value: Any) -> Any:  # noqa: ANN401
    """The keys and types of JSON. A list has the shape of its first item."""
    match value:
        case dict():
            return {key: shape(value[key]) for key in sorted(value)}
        case list():
            return [shape(value[0])] if value else []
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case None:
            return "null"
        case _:
            return "string"


async def test_a_prompt_comes_from_standard_input_with_files(terminal: Terminal) -> None:
    """P-23: words, a pipe and attachments make one prompt."""
    (terminal.place / "notes.txt").write_text("the sky is green\n")
    (terminal.place / "dot.txt").write_text("twice\n")
    files = [str(terminal.place / name) for name in ("notes.txt", "dot.txt")]

    piped = await terminal.json(
        "prompt",
        "SessionsLook:",
        "-",
        "--file",
        files[0],
        "--file",
        files[1],
        stdin="naïve\n".encode(),
    )

    answer = piped[0]
    assert answer["finish"] == "stop"
    prompted = [
        recorded.event
        for recorded in await terminal.up.events(answer["session"])
        if recorded.event.type == "prompt.admitted"
    ]
    prompt: Any = prompted[0]
    assert prompt.prompt.text == "SessionsLook:\n\nnaïve"
    assert [file.name for file in prompt.prompt.files] == ["notes.txt", "dot.txt"]
    assert all(file.mime == "text/plain" for file in prompt.prompt.files)

    alone = await terminal.run("prompt", "--session", answer["session"], stdin=b"only a pipe\n")
    assert alone.code == 0
    assert "only a pipe" in alone.out, alone


async def test_an_answer_with_a_schema_is_an_object(terminal: Terminal) -> None:
    """P-18."""
    schema = terminal.place / "schema.json"
    schema.write_text(
        json.dumps({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
    )

    (answer,) = await terminal.json("prompt", "a number", "--schema", str(schema))

    assert isinstance(answer["output"]["n"], int)


async def test_a_repeated_prompt_with_an_id_runs_once(terminal: Terminal) -> None:
    """A-21: a script may repeat its command."""
    session = await terminal.up.session()
    line = ("prompt", "once", "--session", session, "--id", "msg_cli_once")

    first, again = [(await terminal.json(*line))[0] for _ in range(2)]

    assert first == again
    log = await terminal.up.events(session)
    assert [item.event.type for item in log].count("prompt.admitted") == 1


async def test_a_failed_turn_is_one_line_and_exit_1(terminal: Terminal) -> None:
    failed = await terminal.run("prompt", "[[sim: status=400]] no", "--json")

    assert failed.code == 1
    assert "error" in failed.lines[0]
    assert failed.err.count("\n") == 1


async def test_a_wrong_key_and_a_missing_session_have_their_exit_codes(terminal: Terminal) -> None:
    wrong = await terminal.run("sessions", token="fl_wrong_key")  # noqa: S106
    missing = await terminal.run("tail", "ses_missing")

    assert (wrong.code, missing.code) == (NO_ACCESS, REFUSED)
    assert "--token" in wrong.err
    assert "fairlead sessions" in missing.err


async def test_a_session_that_is_deleted_while_it_is_tailed_ends_the_tail(
    terminal: Terminal,
) -> None:
    session = await terminal.up.session()
    tail = asyncio.create_task(terminal.run("tail", session))
    await asyncio.sleep(1)

    await terminal.up.http.delete(f"/api/session/{session}?purge=true")
    ended = await asyncio.wait_for(tail, TIMEOUT_S)

    assert ended.code == REFUSED
    assert "Session not found" in ended.err


async def test_ctrl_c_in_an_answer_says_how_to_go_on(terminal: Terminal) -> None:
    """A new session has an id that nobody has seen yet."""
    command = (sys.executable, "-m", "fairlead_cli", "prompt", SLOW)
    process = await asyncio.create_subprocess_exec(
        *command,
        *("--http", terminal.up.up.http, "--token", terminal.up.up.token or ""),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    assert await asyncio.wait_for(process.stdout.read(4), TIMEOUT_S)
    process.send_signal(signal.SIGINT)
    printed, remark = await asyncio.wait_for(process.communicate(), TIMEOUT_S)

    assert process.returncode == INTERRUPTED
    assert printed.endswith(b"\n"), "the line of the answer is ended"
    session = re.search(r"the session goes on: fairlead tail (ses_\w+)", remark.decode())
    assert session is not None, remark
    await terminal.up.client.interrupt(session[1])


async def test_the_json_of_every_command_keeps_its_shape(terminal: Terminal) -> None:
    """You may add keys. A changed or missing key breaks programs: docs/guide/cli.md promises it."""
    up, file = terminal.up, str(terminal.place / "out.jsonl")
    shapes: dict[str, Any] = {}

    async def note(*argv: str, name: str | None = None) -> list[Any]:
        lines = await terminal.json(*argv)
        shapes[name or argv[0]] = shape(lines[0])
        return lines

    (answer,) = await note("prompt", "Say hello")
    session = answer["session"]
    for argv in (
        ("shell", session, "echo hi"),
        ("tail", session, "--no-follow"),
        ("sessions", "--limit", "1"),
        ("explain", session),
        ("cost",),
        ("rename", session, "Mine"),
        ("undo", session),
        ("redo", session),
        ("quota",),
        ("export", session, "-o", file),
        ("import", file, "--check", "--id", "ses_cli_copy"),
    ):
        await note(*argv)
    await note("cost", session, name="cost SESSION")

    asking = await terminal.asking_session()
    await note("top")
    (request,) = [ask for ask in await note("asks") if ask["sessionID"] == asking]
    await note("reply", request["id"], "once")

    busy = await up.session()
    await up.client.prompt(busy, SLOW)
    await up.until(busy, "attempt.dispatched")
    queued = await up.client.prompt(busy, "later", delivery="queue")
    for argv in (("inbox", busy), ("cancel", busy, queued.id), ("interrupt", busy)):
        await note(*argv)
    await note("resume", busy)

    assert shapes == json.loads(GOLDEN.read_text())


async def test_top_shows_sessions_and_its_keys_act_on_them(terminal: Terminal) -> None:
    """K-15, C-11: a person answers and interrupts from the screen."""
    up = terminal.up
    asking = await terminal.asking_session()
    busy = await up.session()
    await up.client.prompt(busy, SLOW)
    await up.until(busy, "attempt.dispatched")
    connection = AsyncHttpConnection(up.up.http, up.up.token, patience_s=1.0, http=up.http)
    observer = SessionObserver(up.client, 50)
    first = await observer.look()
    app = TopApp(
        observer, connection, first, every_s=0.3, open_command=["true"], environment=os.environ
    )

    async with app.run_test(size=(100, 30)) as pilot:
        table = app.query_one(DataTable)

        async def select(session: str, words: str) -> None:
            """Wait until the session is shown as the words say, with the cursor on it."""
            detail = app.query_one("#detail", Static)
            async with asyncio.timeout(TIMEOUT_S):
                while not {session, *words.split()} <= set(str(detail.render()).split()):
                    if session in {key.value for key in table.rows}:
                        table.move_cursor(row=table.get_row_index(session))
                    await pilot.pause(0.1)

        await select(asking, "asks: read .env")
        await pilot.press("a")
        await pilot.pause()
        await pilot.press("enter")
        await up.until(asking, "permission.replied")

        await select(busy, "")
        assert "running" in str(table.get_row(busy)[0])
        await pilot.press("i")
        await up.until(busy, "interrupt.requested")

        await pilot.press("q")
