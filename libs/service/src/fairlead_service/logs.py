"""Structured logs: one JSON object per line on standard error.

Every line of a task says what the task works for: the request, the trace, and the fields of its block.
"""

import json
import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final

import orjson
from typing_extensions import override

from fairlead_schema.identity.request_context import CURRENT_REQUEST, CURRENT_TRACE

_PART: Final[ContextVar[str | None]] = ContextVar("fairlead_part", default=None)
_NO_FIELDS: Final[Mapping[str, str]] = MappingProxyType({})
_FIELDS: Final[ContextVar[Mapping[str, str]]] = ContextVar("fairlead_fields", default=_NO_FIELDS)
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
            **current_fields(),
            **{key: value for key, value in vars(record).items() if key not in _STANDARD},
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        try:
            return orjson.dumps(line, default=str).decode()
        except TypeError:
            # orjson refuses lone surrogates and keys that are no text. The slower encoder loses no line.
            return json.dumps(line, default=str, skipkeys=True)


def current_part() -> str | None:
    """The service of this task, where a process has several."""
    return _PART.get()


def current_fields() -> dict[str, str]:
    """The fields of every line of this task: ids of its request and trace, and what blocks added."""
    fields = dict(_FIELDS.get())
    request, trace = CURRENT_REQUEST.get(), CURRENT_TRACE.get()
    if request is not None:
        fields["request_id"] = request
    if trace is not None:
        _version, fields["trace_id"], fields["span_id"], _flags = trace.split("-")
    return fields


def add_fields(**fields: str | None) -> None:
    """Add fields to the lines of this task and of the tasks that it starts from now on."""
    known = {name: value for name, value in fields.items() if value is not None}
    _FIELDS.set({**_FIELDS.get(), **known})


class log_with:  # noqa: N801 - a block of lines, entered for every request and every wake
    """Add fields to the lines of a block and of its tasks. A field without a value is left out."""

    __slots__ = ("_fields", "_token")

    def __init__(self, **fields: str | None) -> None:
        self._fields = fields

    def __enter__(self) -> None:
        known = {name: value for name, value in self._fields.items() if value is not None}
        outer = _FIELDS.get()
        self._token = _FIELDS.set({**outer, **known} if outer else known)

    def __exit__(self, *_error: object) -> None:
        _FIELDS.reset(self._token)


def unbound_context() -> Context:
    """The context of a task that a request starts, and that works for other requests too."""
    context = copy_context()
    context.run(_FIELDS.set, _NO_FIELDS)
    context.run(CURRENT_REQUEST.set, None)
    context.run(CURRENT_TRACE.set, None)
    return context


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
