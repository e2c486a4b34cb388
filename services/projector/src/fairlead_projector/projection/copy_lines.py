"""Rows in the text format of COPY. Pure."""

import re
from collections.abc import Iterable
from typing import Final

from fairlead_projector.projection.rows import EventRow, InputRow, MessageRow, json_row
from fairlead_schema.ids import MessageId
from fairlead_schema.subjects import Address

# The characters that the text format of COPY reserves.
_UNSAFE: Final = re.compile(r"[\\\t\n\r]")
_ESCAPES: Final = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}


def event_lines(events: Iterable[EventRow]) -> bytes:
    """Rows of `projection.session_event`."""
    lines: list[bytes] = []
    last_key, session_cells = ("", ""), ""
    for tenant, session_id, seq, event_id, type_, version, time, data in events:
        if last_key != (tenant, session_id):
            last_key = (tenant, session_id)
            session_cells = f"{_cell(tenant)}\t{_cell(session_id)}"
        if not event_id.isidentifier():
            event_id = _cell(event_id)  # noqa: PLW2901 - a call for each event costs more
        if b"\\" in data:
            data = _json_cell(data)  # noqa: PLW2901
        cells = f"{session_cells}\t{seq}\t{event_id}\t{type_}\t{version}\t{time}\t"
        lines.append(cells.encode() + data)
    return b"\n".join(lines) + b"\n" if lines else b""


def message_lines(messages: Iterable[tuple[Address, MessageId, MessageRow]]) -> bytes:
    """Rows of `projection.session_message`."""
    lines: list[bytes] = []
    for (tenant, session_id), message_id, (seq, message) in messages:
        keys = f"{_cell(tenant)}\t{_cell(session_id)}\t{_cell(message_id)}"
        cells = f"{keys}\t{seq}\t{message.type}\t"
        lines += (cells.encode(), _json_cell(json_row(message)), b"\n")
    return b"".join(lines)


def input_lines(inputs: Iterable[InputRow]) -> bytes:
    """Rows of `projection.session_input`."""
    lines: list[bytes] = []
    for row in inputs:
        keys = f"{_cell(row.tenant)}\t{_cell(row.session_id)}\t{_cell(row.message_id)}"
        promoted = "\\N" if row.promoted_seq is None else row.promoted_seq
        cancelled = "t" if row.cancelled else "f"
        cells = f"{keys}\t{row.admitted_seq}\t{promoted}\t{cancelled}\t{row.delivery}\t"
        lines += (cells.encode(), _json_cell(json_row(row.prompt)), b"\t%d\n" % row.created_at)
    return b"".join(lines)


def _cell(text: str) -> str:
    if text.isidentifier():
        return text
    return _UNSAFE.sub(lambda match: _ESCAPES[match[0]], text)


def _json_cell(data: bytes) -> bytes:
    # JSON holds no raw tab or newline, only backslashes.
    return data.replace(b"\\", b"\\\\") if b"\\" in data else data
