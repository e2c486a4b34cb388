"""Commands in real terminals: narrow, without colour, without UTF-8, and a key that expires."""

import asyncio
import fcntl
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from apps.cli.tests.answering_server import AnsweringServer
from fairlead_cli.__main__ import main
from fairlead_cli.command_line.exit_codes import NO_ACCESS, NO_SERVER, REFUSED, USAGE
from fairlead_cli.gateway_absence import AWAY, BACK, absence_notes
from fairlead_client.async_client.http_connection import AsyncHttpConnection
from fairlead_schema.errors import Refused, ServiceUnavailable, SessionNotFound, Unauthorized

NOWHERE = "http://127.0.0.1:9"
LONG = "A title that is far too long for a narrow terminal, with ünïcödé and 漢字"
SESSION = {
    "id": "ses_0001",
    "projectID": "p",
    "time": {"created": 1, "updated": 2},
    "title": LONG,
    "location": {"directory": "/tmp"},  # noqa: S108
    "cost": 1.5,
}
EVENT = {
    "id": "evt_1",
    "type": "session.next.text.ended",
    "data": {"timestamp": 1, "sessionID": "ses_0001", "text": LONG},
    "durable": {"aggregateID": "ses_0001", "seq": 1, "version": 1},
}


def in_terminal(arguments: list[str], **variables: str) -> tuple[int, str]:
    """The exit code and the output of a command in a terminal of its own."""
    master, slave = pty.openpty()
    environment = {"PATH": os.environ["PATH"], "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    with subprocess.Popen(
        [sys.executable, "-m", "fairlead_cli", *arguments],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**environment, **variables},
    ) as process:
        os.close(slave)
        output = b""
        while chunk := _read(master):
            output += chunk
    os.close(master)
    return process.returncode, output.decode(errors="replace").replace("\r\n", "\n")


def _read(master: int) -> bytes:
    try:
        return os.read(master, 65_536)
    except OSError:
        return b""


@pytest.mark.parametrize(
    "variables",
    [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {"TERM": "no-such-terminal", "NO_COLOR": "1"}],
    ids=["NO_COLOR", "dumb", "unknown"],
)
def test_a_terminal_without_colour_gets_none(
    server: AnsweringServer, variables: dict[str, str]
) -> None:
    server.answer({"data": [SESSION]})

    code, output = in_terminal(["sessions", "--http", server.url], **variables)

    assert code == 0
    assert "ses_0001" in output
    assert "\x1b[3" not in output, "no colour"


def test_forty_columns_are_enough_for_a_table(server: AnsweringServer) -> None:
    server.answer({"data": [SESSION]})

    code, output = in_terminal(["sessions", "--http", server.url], COLUMNS="40", NO_COLOR="1")

    assert code == 0
    assert "ses_0001" in output
    lines = re.sub(r"\x1b\[[0-9;]*m", "", output).splitlines()
    assert max(len(line) for line in lines) <= 40


def test_a_terminal_without_utf_8_gets_replacements(server: AnsweringServer) -> None:
    server.answer({"data": [SESSION]})

    code, output = in_terminal(
        ["sessions", "--http", server.url],
        LANG="C",
        LC_ALL="C",
        PYTHONUTF8="0",
        PYTHONIOENCODING="ascii",
        TERM="dumb",
    )

    assert code == 0
    assert "Traceback" not in output
    assert "ses_0001" in output


@pytest.mark.parametrize("name", ["chat", "top"])
@pytest.mark.parametrize(
    ("url", "code", "sentence"),
    [
        ("127.0.0.1:9", USAGE, "write it as http://"),
        ("http://127.0.0.1:notaport", USAGE, "--http"),
        ("http://no-such-host.invalid", NO_SERVER, "nothing answers at http://no-such-host"),
        ("{server}", NO_SERVER, "fairlead --version"),
        ("{server}/some/path", NO_SERVER, "fairlead --version"),
    ],
    ids=["no scheme", "no port", "no host", "another program", "a path of it"],
)
def test_a_wrong_address_of_a_screen_is_one_sentence(
    server: AnsweringServer, tmp_path: Path, name: str, url: str, code: int, sentence: str
) -> None:
    server.answer(b"<!doctype html><h1>It works!</h1>", mime="text/html")
    address = url.replace("{server}", server.url)

    ended, output = in_terminal([name, "--http", address, "--state", str(tmp_path)])

    assert ended == code, output
    last = output.rpartition("\r")[2].strip()
    assert last.startswith("fairlead: ")
    assert sentence in last
    assert "Traceback" not in output


@pytest.mark.parametrize("name", ["chat", "top", "sessions"])
def test_authorities_that_cannot_be_read_are_named(name: str, tmp_path: Path) -> None:
    missing = tmp_path / "ca.pem"
    command = [name, "--http", "https://127.0.0.1:9", "--state", str(tmp_path)]

    ended, output = in_terminal(command, FAIRLEAD_HTTP_TLS_CA=str(missing))

    assert ended == NO_SERVER, output
    assert f"no certificates in {missing}" in output
    assert "Traceback" not in output


@pytest.mark.parametrize("name", ["chat", "top"])
def test_a_screen_that_cannot_open_leaves_one_sentence(name: str, tmp_path: Path) -> None:
    nowhere = ["--http", "http://127.0.0.1:9", "--state", str(tmp_path)]

    code, output = in_terminal([name, *nowhere], COLUMNS="40")

    assert code == 3
    last = output.rpartition("\r")[2].strip()
    assert last.startswith("fairlead: nothing answers at http://127.0.0.1:9")
    assert "Traceback" not in output
    assert f"fairlead {name}: opening" in output, "a person sees at once that it starts"


@pytest.mark.parametrize(
    ("refusal", "code"),
    [(Unauthorized("The token is expired"), NO_ACCESS), (SessionNotFound("ses_0001"), REFUSED)],
    ids=["expired token", "deleted session"],
)
def test_what_ends_a_stream_in_the_middle_is_one_sentence(
    server: AnsweringServer, capsys: pytest.CaptureFixture[str], refusal: Refused, code: int
) -> None:
    frame = f"id: 1\ndata: {json.dumps(EVENT)}\n\n".encode()
    server.answer(frame, mime="text/event-stream")
    server.refuse_later(refusal)

    assert main(["tail", "ses_0001", "--http", server.url]) == code
    printed = capsys.readouterr()
    assert "text.ended" in printed.out
    assert refusal.body.message in printed.err
    assert printed.err.count("\n") == 1


def test_a_server_that_goes_away_is_noted_while_a_stream_is_followed(
    server: AnsweringServer,
) -> None:
    """Without a word that looks like a model that thinks."""
    frame = f"id: 1\ndata: {json.dumps(EVENT)}\n\n".encode()
    server.answer(frame, mime="text/event-stream")
    server.refuse_later(ServiceUnavailable("no log"))
    argv = [sys.executable, "-m", "fairlead_cli", "tail", "ses_0001", "--http", server.url]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None

        assert AWAY.encode() in process.stderr.readline()
        process.terminate()


async def test_the_return_of_a_server_is_noted_too() -> None:
    connection, notes = AsyncHttpConnection(NOWHERE, patience_s=0), list[str]()
    async with absence_notes(connection, notes.append):
        connection.was_open, connection.failure = True, ServiceUnavailable("no log")
        while notes != [AWAY]:
            await asyncio.sleep(0.05)
        connection.failure = None
        while notes != [AWAY, BACK]:
            await asyncio.sleep(0.05)
    await connection.aclose()


@pytest.mark.parametrize(
    ("token", "reason"),
    [(b"", "the file is empty"), (b"\xff\xfe", "can't decode"), (b"two words", "no token has")],
)
def test_a_token_file_that_holds_none_is_said_before_anything_is_sent(
    token: bytes,
    reason: str,
    server: AnsweringServer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "token").write_bytes(token)
    (tmp_path / "run.json").write_text(json.dumps({"http": server.url}))
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)

        assert main(["sessions", "--state", str(tmp_path)]) == NO_ACCESS

    line = capsys.readouterr().err
    assert f"no token from {tmp_path / 'token'}" in line
    assert reason in line
    assert "refused" not in line


def test_who_names_no_key_learns_where_a_stack_keeps_it(
    server: AnsweringServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A second terminal may be in another directory than `fairlead up`."""
    server.refuse(Unauthorized("Authentication required"))

    assert main(["sessions", "--http", server.url, "--state", str(tmp_path)]) == NO_ACCESS
    assert "name the directory of the stack with --state" in capsys.readouterr().err


@pytest.mark.parametrize("what", ["webhook", "schedule", "sessions", "asks"])
def test_an_empty_list_is_a_sentence(
    what: str, server: AnsweringServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.answer({"data": []})
    listing = [what, "list"] if what in {"webhook", "schedule"} else [what]

    assert main([*listing, "--http", server.url]) == 0
    assert capsys.readouterr().out.startswith("No ")
