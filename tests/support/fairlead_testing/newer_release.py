"""A release after this one: it knows an event that this release cannot read."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import pytest

from fairlead_cli.deployment.doctor import nats_findings
from fairlead_eventlog.jetstream.registers import log_status
from fairlead_eventlog.status import status_record
from fairlead_schema import record
from fairlead_schema.events import Event
from fairlead_schema.record import Commit, Recorded, encode
from fairlead_session.fold import evolve
from fairlead_session.state.session import Session


class WeatherNoted(Event):
    """An event of the newer release. It changes nothing but the session's time."""

    type: ClassVar[str] = "weather.noted"
    level: ClassVar[int] = record.LEVEL_NEWEST + 1

    sky: str = "clear"


@contextmanager
def newer_release() -> Iterator[None]:
    """Let this process be of the newer release during the block."""
    key = (WeatherNoted.type, WeatherNoted.version)
    validate = WeatherNoted.__pydantic_validator__.validate_python
    with pytest.MonkeyPatch.context() as patch:
        for module in (record, log_status, status_record, nats_findings):
            patch.setattr(module, "LEVEL_NEWEST", WeatherNoted.level)
        patch.setitem(record._VALIDATE, key, validate)  # noqa: SLF001 - only a release adds events
        patch.setitem(evolve.REDUCERS, WeatherNoted, (("todos", _keep_todos),))
        yield


def newer_commit(seq: int, *, id_: str = "x") -> bytes:
    """A commit of the newer release with its one event."""
    event: Any = WeatherNoted()
    return encode(Commit(f"cmt_{id_}", (Recorded(f"evt_{id_}", seq, seq, event),)))


def _keep_todos(session: Session, _event: object, _recorded: Recorded) -> object:
    return session.todos
