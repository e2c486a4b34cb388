"""Mistakes and absent servers: one line that helps, the promised exit code, never a traceback."""

import io
import json
import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from apps.cli.tests.answering_server import AnsweringServer
from fairlead_cli.__main__ import main
from fairlead_cli.command_line.exit_codes import (
    DEFECT,
    FAILED,
    MEANINGS,
    NO_ACCESS,
    NO_SERVER,
    REFUSED,
    USAGE,
)
from fairlead_schema.errors import (
    Forbidden,
    InvalidRequest,
    Refused,
    SessionNotFound,
    Unauthorized,
)

NOWHERE = "http://127.0.0.1:9"


def one_line(capsys: pytest.CaptureFixture[str]) -> str:
    message = capsys.readouterr().err
    assert message.count("\n") == 1, message
    return message


@pytest.mark.parametrize(
    ("argv", "meant"),
    [
        (["sesions"], "did you mean sessions?"),
        (["prmpt", "hi"], "did you mean prompt?"),
        (["sessions", "--jsno"], "did you mean --json?"),
        (["token", "creat"], "did you mean create?"),
        (["completion", "zhs"], "did you mean zsh"),
        (["completion", "tcsh-like"], "choose bash, zsh or fish"),
        (["webhook", "create", "https://x", "--evnt", "rested"], "did you mean --event?"),
        (["webhook", "create", "https://x", "y"], "one word too many"),
        (["schedule", "creat"], "did you mean create?"),
        (["rename", "ses_x", "two", "words"], "put a text with spaces in quotes"),
        (["xyzzy"], "see `fairlead --help`"),
        (["sim", "--port", "99999"], "--port: 99999 is no port: choose 0 to 65535"),
        (["up", "--port", "-1"], "--port: -1 is no port"),
        (["bench", "xyz"], "WHAT 'xyz' is not known: choose all, chat,"),
        (["tail", "ses_x", "--after", "now"], "--after must be a whole number, and 'now' is not"),
        (["top", "--every", "often"], "--every must be a number, and 'often' is not"),
        (["--verison"], "did you mean --version?"),
        (["help", "prmpt"], "did you mean prompt?"),
    ],
)
def test_a_misspelt_word_gets_a_suggestion_and_2(
    argv: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == USAGE
    assert meant in one_line(capsys)


def test_a_misspelt_word_is_json_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tail", "--json"]) == USAGE

    error = json.loads(one_line(capsys))["error"]
    assert error["exit"] == USAGE
    assert "required: SESSION" in error["message"]


@pytest.mark.parametrize(
    "argv",
    [["--json", "sessions"], ["--http", NOWHERE, "sessions"], ["--token=hidden", "sessions"]],
)
def test_an_option_before_the_command_gets_its_place(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    option = argv[0].partition("=")[0]

    assert main(argv) == USAGE
    line = one_line(capsys)
    assert f"write {option} after the command: fairlead sessions {option}" in line
    assert "hidden" not in line


@pytest.mark.parametrize(
    "argv",
    [["prompt", "hi"], ["tail", "ses_x"], ["tail", "ses_x", "--no-follow"], ["undo", "ses_x"]],
)
def test_a_server_that_is_away_is_said_in_one_line(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code = main([*argv, "--http", NOWHERE])

    assert code == NO_SERVER
    assert "fairlead up" in one_line(capsys)


@pytest.mark.parametrize(
    ("refusal", "code", "words"),
    [
        (SessionNotFound("ses_x"), REFUSED, "`fairlead sessions` lists"),
        (Unauthorized("The token is expired: ask for a new one"), NO_ACCESS, "--token"),
        (Forbidden("Needs session:write"), NO_ACCESS, "fairlead token create"),
        (InvalidRequest("No such route: /api/session/ses_x"), REFUSED, "another release"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Refused) else "",
)
def test_a_refusal_says_what_a_person_can_do(
    server: AnsweringServer,
    capsys: pytest.CaptureFixture[str],
    refusal: Refused,
    code: int,
    words: str,
) -> None:
    server.refuse(refusal)

    assert main(["explain", "ses_x", "--http", server.url]) == code
    message = one_line(capsys)
    assert refusal.body.message in message
    assert words in message


def test_a_failure_is_json_for_programs(
    server: AnsweringServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.refuse(SessionNotFound("ses_x"))

    assert main(["inbox", "ses_x", "--json", "--http", server.url]) == REFUSED

    printed = capsys.readouterr()
    assert printed.out == ""
    error = json.loads(printed.err)["error"]
    assert (error["exit"], error["tag"]) == (REFUSED, "SessionNotFoundError")


@pytest.mark.parametrize(
    ("body", "mime"),
    [(b"<html>hello</html>", "text/html"), (b"{", "application/json"), ({"data": [{"id": 1}]}, "")],
    ids=["a web page", "broken JSON", "sessions of a newer release"],
)
def test_a_server_that_speaks_another_language_is_no_traceback(
    server: AnsweringServer, capsys: pytest.CaptureFixture[str], body: object, mime: str
) -> None:
    server.answer(body, mime=mime or "application/json")

    assert main(["sessions", "--http", server.url]) == NO_SERVER
    assert "fairlead --version" in one_line(capsys)


@pytest.mark.parametrize("url", ["127.0.0.1:8420", "http://[::bad", "http://127.0.0.1:99999"])
def test_an_address_that_is_none_is_a_mistake_of_the_caller(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sessions", "--http", url]) == USAGE
    assert "--http" in one_line(capsys)


def test_no_message_shows_the_password_of_an_address_or_a_token(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["sessions", "--http", "http://me:hidden@127.0.0.1:1"]) == NO_SERVER
    assert "hidden" not in one_line(capsys)
    assert main(["sessions", "--http", NOWHERE, "--token", "hidden words"]) == USAGE
    assert "hidden" not in one_line(capsys)


def test_what_is_no_session_id_is_said_before_anything_is_sent(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["rename", "my session", "title", "--http", NOWHERE]) == REFUSED
    assert "an id begins with ses" in one_line(capsys)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"caf\xe9", "not UTF-8 (byte 4)"),
        (b"", "the prompt is empty"),
        (b"x" * (512 * 1024 + 1), "--file"),
    ],
)
def test_standard_input_that_is_no_prompt_is_a_mistake_of_the_caller(
    text: bytes,
    words: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))

    assert main(["prompt", "--http", NOWHERE]) == USAGE
    assert words in one_line(capsys)


def test_an_attachment_that_cannot_be_read_is_said_before_a_session_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = str(tmp_path / "missing.png")

    assert main(["prompt", "hi", "--file", missing, "--http", NOWHERE]) == USAGE
    assert "No such file" in one_line(capsys)


@pytest.mark.parametrize("name", ["/dev/zero", "large.bin", "."])
def test_an_attachment_without_an_end_is_refused_before_it_is_read(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (tmp_path / "large.bin").open("wb") as large:
        large.truncate(1 << 40)

    file = str(tmp_path / name)
    assert main(["prompt", "hi", "--file", file, "--http", NOWHERE]) == USAGE
    assert f"--file {file}" in one_line(capsys)


def test_a_file_to_verify_that_is_missing_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = str(tmp_path / "export.jsonl")

    assert main(["verify", missing]) == USAGE
    assert f"{missing}: no such file" in one_line(capsys)


def test_an_argument_of_broken_characters_is_a_mistake_of_the_caller() -> None:
    command = [os.fsencode(sys.executable), b"-m", b"fairlead_cli", b"prompt", b"caf\xe9"]

    process = subprocess.run(command, capture_output=True, check=False)

    assert process.returncode == USAGE
    assert b"argument 2 (caf?) is not UTF-8" in process.stderr


@pytest.mark.parametrize("command", ["chat", "top"])
def test_a_screen_that_would_be_drawn_into_a_file_is_refused(command: str) -> None:
    """The library of the terminal draws on standard error."""
    master, terminal = pty.openpty()
    argv = [sys.executable, "-m", "fairlead_cli", command, "--http", NOWHERE]
    process = subprocess.run(
        argv, stdin=terminal, stdout=terminal, stderr=subprocess.PIPE, check=False, timeout=60
    )
    os.close(master)
    os.close(terminal)

    assert process.returncode == USAGE
    assert b"needs a terminal" in process.stderr


def test_a_defect_is_one_line_unless_somebody_wants_the_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fairlead_cli.commands.overview.sessions", None)
    assert main(["sessions"]) == DEFECT
    assert "FAIRLEAD_TRACEBACK=1" in one_line(capsys)

    monkeypatch.setenv("FAIRLEAD_TRACEBACK", "1")
    with pytest.raises(ModuleNotFoundError):
        main(["sessions"])


def test_a_disk_that_is_full_is_no_defect(
    server: AnsweringServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answer({"data": []})
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr(sys, "stdout", full)

        assert main(["sessions", "--http", server.url]) == FAILED
        monkeypatch.undo()
        with suppress(OSError):
            full.close()

    assert "No space left on device" in one_line(capsys)


def test_every_exit_code_that_an_error_has_is_in_the_table() -> None:
    import fairlead_cli.errors as module  # noqa: PLC0415 - all its classes are looked at

    codes = {
        kind.exit_code
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, module.CommandError)
    }

    assert codes == {FAILED, USAGE, NO_SERVER, REFUSED, NO_ACCESS}
    assert codes < MEANINGS.keys()
