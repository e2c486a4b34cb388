"""Why an export cannot be used. Nothing is written after such an error."""

from typing import Literal, TypeAlias

from fairlead_schema.ids import SessionId

ExportFault: TypeAlias = Literal[
    "NotAnExport",
    "Format",
    "Level",
    "LineTooLong",
    "Malformed",
    "Order",
    "Truncated",
    "Edited",
    "OtherAggregate",
    "Checksum",
    "UnknownEvent",
    "Gap",
    "ForeignEventID",
    "Rule",
]
"""What is wrong with an export, for programs."""


class ExportError(Exception):
    """An export that cannot be used: which line, and of which session and event."""

    def __init__(
        self,
        fault: ExportFault,
        reason: str,
        *,
        line: int | None = None,
        session_id: SessionId | None = None,
        seq: int | None = None,
    ) -> None:
        super().__init__(reason if line is None else f"line {line}: {reason}")
        self.fault = fault
        self.line = line
        self.session_id = session_id
        self.seq = seq
