"""Structured logs: one JSON object per line on standard error."""

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Final

import orjson
from typing_extensions import override

_PART: Final[ContextVar[str | None]] = ContextVar("fairlead_part", default=None)
_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonLines(logging.Formatter):
    """Formats a record as one JSON line. Each key of `extra` becomes a key of the line."""

    def __init__(self, service: str) -> None:
        super().__init__()
        self._service = service

    @override
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "service": _PART.get() or self._service,
            "logger": record.name,
            "message": record.getMessage(),
            **{key: value for key, value in vars(record).items() if key not in _STANDARD},
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        try:
            return orjson.dumps(line, default=str).decode()
        except TypeError:
            # orjson refuses lone surrogates and keys that are no text. The slower encoder loses no line.
            return json.dumps(line, default=str, skipkeys=True)


@contextmanager
def log_as(service: str) -> Iterator[None]:
    """Name a service in the lines of a block and of its tasks, where a process has several."""
    token = _PART.set(service)
    try:
        yield
    finally:
        _PART.reset(token)


def configure(service: str, level: str) -> None:
    """Send every logger of this process to standard error as JSON lines."""
    stream = logging.StreamHandler(sys.stderr)
    stream.setFormatter(JsonLines(service))
    logging.basicConfig(level=level, handlers=[stream], force=True)
    for noisy in ("httpx", "httpcore", "nats", "uvicorn.access"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
