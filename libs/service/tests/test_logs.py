"""Logs: one JSON object per line, whatever the message holds."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from fairlead_schema.identity.request_context import CURRENT_REQUEST, CURRENT_TRACE
from fairlead_service.logs import (
    JsonLines,
    add_fields,
    configure,
    current_fields,
    log_with,
    unbound_context,
)


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


def test_every_line_of_a_block_says_what_it_works_for() -> None:
    with log_with(tenant="acme", principal=None, session_id="ses_1"):
        add_fields(attempt_id="att_1")
        inside = line(session_id="ses_2")

    assert (inside["tenant"], inside["attempt_id"]) == ("acme", "att_1")
    assert inside["session_id"] == "ses_2", "what the line itself says counts"
    assert "principal" not in inside
    assert current_fields() == {}


def test_a_line_names_the_request_and_the_trace_unless_a_task_works_for_others_too() -> None:
    trace = f"00-{'a' * 32}-{'b' * 16}-01"
    tokens = CURRENT_REQUEST.set("req_1"), CURRENT_TRACE.set(trace)
    try:
        with log_with(tenant="acme"):
            entry, shared = line(), unbound_context().run(line)
    finally:
        CURRENT_REQUEST.reset(tokens[0])
        CURRENT_TRACE.reset(tokens[1])

    assert entry["request_id"] == "req_1"
    assert (entry["trace_id"], entry["span_id"]) == ("a" * 32, "b" * 16)
    assert not {"request_id", "trace_id", "span_id", "tenant"} & shared.keys()
