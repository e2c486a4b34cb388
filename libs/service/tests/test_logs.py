"""Logs: one JSON object per line, whatever the message holds."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from fairlead_service.logs import JsonLines, configure


def line(message: str = "hello", *args: object, **extra: object) -> dict[str, Any]:
    logger = logging.getLogger("test")
    record = logger.makeRecord("test", logging.INFO, "f.py", 1, message, args, None, extra=extra)
    formatted = JsonLines("runner").format(record)
    assert "\n" not in formatted
    parsed: dict[str, Any] = json.loads(formatted)
    return parsed


@pytest.fixture
def _logging_restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def test_a_line_says_when_who_and_what() -> None:
    entry = line("hello %s", "you")

    assert entry["message"] == "hello you"
    assert (entry["level"], entry["service"], entry["logger"]) == ("info", "runner", "test")
    assert entry["time"].endswith("+00:00")


def test_extras_are_keys_of_their_own() -> None:
    entry = line(session_id="ses_1", keys=["a"], count=3)

    assert (entry["session_id"], entry["keys"], entry["count"]) == ("ses_1", ["a"], 3)
    assert "args" not in entry
    assert "taskName" not in entry


@pytest.mark.parametrize(
    "odd",
    [object(), {1: "a"}, 2**80, "\ud800", {"set"}, b"\xff", ValueError("x")],
    ids=["object", "key", "large", "surrogate", "set", "bytes", "error"],
)
def test_nothing_that_is_said_can_lose_a_line(odd: object) -> None:
    assert line(odd=odd)["message"] == "hello"


def test_a_message_of_many_lines_is_one_line() -> None:
    assert line("one\ntwo")["message"] == "one\ntwo"


def test_an_exception_is_told_with_its_traceback() -> None:
    with pytest.raises(ValueError, match="Expecting") as caught:
        json.loads("broken")
    why = (caught.type, caught.value, caught.tb)
    record = logging.LogRecord("t", logging.ERROR, "f", 1, "failed", (), why)

    entry = json.loads(JsonLines("runner").format(record))

    assert "JSONDecodeError: Expecting value" in entry["error"]
    assert "Traceback" in entry["error"]


@pytest.mark.usefixtures("_logging_restored")
def test_a_configured_process_logs_to_standard_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure("ingest", "INFO")

    logging.getLogger("any").info("hello", extra={"session_id": "ses_1"})
    logging.getLogger("any").debug("too quiet")
    logging.getLogger("httpx").info("noise")

    lines = capsys.readouterr().err.splitlines()
    assert [json.loads(line)["message"] for line in lines] == ["hello"]
