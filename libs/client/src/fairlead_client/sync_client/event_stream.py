# Generated from async_client/event_stream.py by `make client`: change that file.
"""Follows the events of a session through every interruption, without a gap and without a double."""

from collections.abc import Generator
from contextlib import closing
from typing import Final, Protocol

from fairlead_client.errors import ClientError, TokenUnavailable
from fairlead_client.received_event import ReceivedEvent
from fairlead_client.retry_policy import Interruption, is_passing, pause_s
from fairlead_client.stream_place import StreamPlace
from fairlead_client.sync_client.runtime import sleep
from fairlead_schema.errors import Refused, ServiceUnavailable, SessionNotFound, Unauthorized

CAUGHT_UP: Final = "caught-up"
"""The comment of a stream that has shown all that the log has."""
ERASED: Final = "session.purged"


class StreamSource(Protocol):
    """Opens the stream of a session once. What breaks is opened again from the place that it reached."""

    @property
    def patience_s(self) -> float | None:
        """How long the first answer may take."""

    def read_stream(self, place: StreamPlace) -> Generator[ReceivedEvent | str, None, None]:
        """The events after the place, and comments. Raises the error that the stream ends with."""

    def note_failure(self, failure: Exception | None) -> None:
        """Keep why a followed stream is interrupted now; None: it is not."""

    def renew_token(self) -> bool:
        """Read the credentials again after a refusal. False: there are no others."""


def follow_events(
    source: StreamSource, place: StreamPlace
) -> Generator[ReceivedEvent | None, None, None]:
    """Every event after the place as it comes. None: nothing is new at this moment."""
    with closing(_follow_stream(source, place)) as stream:
        for item in stream:
            yield None if isinstance(item, str) else item
            _check_erased(item, place)


def read_events(source: StreamSource, place: StreamPlace) -> Generator[ReceivedEvent, None, None]:
    """Every event after the place that is in the log now."""
    with closing(_follow_stream(source, place)) as stream:
        for item in stream:
            if isinstance(item, str):
                if item == CAUGHT_UP:
                    return
            elif item.seq is not None:
                yield item
            _check_erased(item, place)


def _follow_stream(
    source: StreamSource, place: StreamPlace
) -> Generator[ReceivedEvent | str, None, None]:
    """Every event after the place, and each comment of the stream. It does not end by itself.

    Before the first answer the patience of the source holds. After it the stream is opened again for
    ever. Raises Refused if the server has nothing to follow, and ClientError.
    """
    interruption = Interruption()
    while True:
        try:
            with closing(source.read_stream(place)) as stream:
                for item in stream:
                    interruption.end()
                    source.note_failure(None)
                    yield item
            error: ClientError | Refused = ServiceUnavailable("The stream ended")
        except (Unauthorized, TokenUnavailable) as refusal:
            if not _has_other_token(source) and not interruption.was_open:
                raise
            error = refusal
        except (ClientError, Refused) as problem:
            if not is_passing(problem, is_repeatable=True):
                raise
            error = problem
        source.note_failure(error)
        if interruption.has_lasted(error, source.patience_s):
            raise error
        place.deadline.check()
        place.fragments.reconnect()
        sleep(pause_s(interruption.failures - 1, error))


def _check_erased(item: ReceivedEvent | str, place: StreamPlace) -> None:
    """Raise SessionNotFound behind the last event of a session. The server keeps the stream open."""
    if not isinstance(item, str) and item.type == ERASED:
        raise SessionNotFound(place.session_id)


def _has_other_token(source: StreamSource) -> bool:
    """Whether there is another token now. A source that gives none may give one later."""
    try:
        return source.renew_token()
    except TokenUnavailable:
        return False
