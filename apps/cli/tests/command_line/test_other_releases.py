"""Older and newer servers: every command says so in one line, whatever shape the answer has."""

import json
from typing import Any

import pytest

from apps.cli.tests.answering_server import AnsweringServer
from fairlead_cli.__main__ import main
from fairlead_cli.command_line.exit_codes import DONE, NO_SERVER

SESSION = "ses_0001"
COMMANDS = [
    ["sessions"],
    ["prompt", "hi"],
    ["prompt", "hi", "--session", SESSION],
    ["cost"],
    ["cost", SESSION],
    ["tail", SESSION, "--no-follow"],
    ["shell", SESSION, "ls"],
    ["explain", SESSION],
    ["inbox", SESSION],
    ["asks"],
    ["reply", "per_0001", "once"],
    ["undo", SESSION],
    ["redo", SESSION],
    ["quota"],
    ["top", "--json"],
    ["webhook", "list"],
    ["schedule", "list"],
    ["models"],
]
SHAPES: list[Any] = [
    None,
    [],
    {},
    {"data": None},
    {"data": 7},
    {"data": [7]},
    {"data": [{}]},
    {"data": {}},
]


@pytest.mark.parametrize("shape", SHAPES, ids=json.dumps)
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_shape_of_an_answer_is_a_defect_of_the_command(
    server: AnsweringServer,
    capsys: pytest.CaptureFixture[str],
    command: list[str],
    shape: object,
) -> None:
    server.answer(shape)

    code = main([*command, "--http", server.url])

    printed = capsys.readouterr()
    assert "a defect" not in printed.err
    assert code != DONE or "Traceback" not in printed.out
    if code == NO_SERVER:
        assert "fairlead --version" in printed.err
        assert printed.err.count("\n") == 1


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_refusal_that_this_release_does_not_know_is_passed_on(
    server: AnsweringServer, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    body = {"_tag": "QuantumError", "message": "The session is in two states at once"}
    server.answer(body, status=422)

    assert main([*command, "--http", server.url]) != DONE
    error = capsys.readouterr().err
    assert "two states at once" in error
    assert "QuantumError" in error
