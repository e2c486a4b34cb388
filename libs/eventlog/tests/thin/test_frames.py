"""Frames of the NATS protocol, out and in."""

import nats.errors
import pytest

from fairlead_eventlog.jetstream.thin.frames import (
    InboundMessage,
    encode_headers,
    encode_publish,
    parse_headers,
)


@pytest.mark.parametrize(
    ("reply", "headers", "frame"),
    [
        ("", None, b"PUB a  2\r\nhi\r\n"),
        ("b", None, b"PUB a b 2\r\nhi\r\n"),
        ("", {"K": "v"}, b"HPUB a  18 20\r\nNATS/1.0\r\nK: v\r\n\r\nhi\r\n"),
        ("b", {"K": "v"}, b"HPUB a b 18 20\r\nNATS/1.0\r\nK: v\r\n\r\nhi\r\n"),
    ],
)
def test_a_publish_as_bytes(reply: str, headers: dict[str, str] | None, frame: bytes) -> None:
    assert encode_publish("a", reply, b"hi", headers, bytes_max=20) == frame


def test_a_header_cannot_hold_another_header() -> None:
    assert encode_headers({"K": " v\r\nBy: other "}) == b"NATS/1.0\r\nK: v  By: other\r\n\r\n"
    with pytest.raises(nats.errors.BadHeaderError):
        encode_headers({"K: v\r\nBy": "other"})


def test_the_limit_counts_headers() -> None:
    with pytest.raises(nats.errors.MaxPayloadError):
        encode_publish("a", "", b"hi", {"K": "v"}, bytes_max=19)


@pytest.mark.parametrize(
    ("raw", "headers"),
    [
        (b"NATS/1.0\r\n\r\n", {}),
        (b"NATS/1.0\r\nA: b\r\nC:d\r\n\r\n", {"A": "b", "C": "d"}),
        (b"NATS/1.0 503\r\n\r\n", {"Status": "503"}),
        (b"NATS/1.0 404 No Messages\r\n\r\n", {"Status": "404", "Description": "No Messages"}),
        (
            b"NATS/1.0 100 Idle Heartbeat\r\nNats-Last-Consumer: 7\r\n\r\n",
            {"Status": "100", "Description": "Idle Heartbeat", "Nats-Last-Consumer": "7"},
        ),
        (b"NATS/1.0\r\nno colon\r\nbad key: 1\r\nA: b: c\r\n\r\n", {"A": "b: c"}),
        (b"NATS/1.0\r\nA: \xff\r\n\r\n", {"A": "\ufffd"}),
        (b"", {}),
    ],
)
def test_headers_are_read_whatever_they_hold(raw: bytes, headers: dict[str, str]) -> None:
    assert parse_headers(raw) == headers
    assert InboundMessage("a", raw_headers=raw).headers == headers


@pytest.mark.parametrize(
    ("raw", "data", "is_status", "found_nobody"),
    [
        (None, b"", False, False),
        (b"NATS/1.0 503\r\n\r\n", b"", True, True),
        (b"NATS/1.0 408 Request Timeout\r\n\r\n", b"", True, False),
        (b"NATS/1.0\r\nA: b\r\n\r\n", b"", False, False),
        (b"NATS/1.0 100\r\n\r\n", b"body", False, False),
    ],
)
def test_the_status_is_seen_without_parsing(
    raw: bytes | None, data: bytes, *, is_status: bool, found_nobody: bool
) -> None:
    message = InboundMessage("a", "", data, raw)
    assert (message.is_status, message.found_nobody) == (is_status, found_nobody)


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        (None, None),
        (b"NATS/1.0\r\n\r\n", None),
        (b"NATS/1.0\r\nNats-Sequence: 7\r\n\r\n", "7"),
        (b"NATS/1.0\r\nNats-Sequence: 1\r\nA: b\r\nNats-Sequence: 7\r\nC: d\r\n\r\n", "7"),
        (b"NATS/1.0\r\nNats-Last-Nats-Sequence: 7\r\n\r\n", None),
    ],
)
def test_a_header_of_the_server_is_found_without_the_others(
    raw: bytes | None, found: str | None
) -> None:
    """A stored message may hold a header of the same name: what the server added is the last."""
    assert InboundMessage("s", raw_headers=raw).find_header("Nats-Sequence") == found
