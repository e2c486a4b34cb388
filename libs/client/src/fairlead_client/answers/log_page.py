"""One page of a log over NATS: what a reader has not had of it, and how it ends."""

from typing import Any, NamedTuple

from fairlead_client.answers.answer_models import dict_of
from fairlead_client.errors import MalformedAnswer
from fairlead_client.received_event import ReceivedEvent, event_of
from fairlead_client.stream_place import StreamPlace
from fairlead_schema.errors import SessionUnreadable


class LogPage(NamedTuple):
    """The new events of a page. `end` is raised behind them: nothing after it can be read."""

    events: list[ReceivedEvent]
    has_more: bool
    end: MalformedAnswer | SessionUnreadable | None


def take_page(place: StreamPlace, data: object) -> LogPage:
    """Move a reader over a page. Raises MalformedAnswer if it is none."""
    page, events = dict_of(data), list[ReceivedEvent]()
    try:
        raws, seq, has_more = page["events"], int(page["seq"]), bool(page["hasMore"])
        for raw in raws:
            try:
                event = event_of(raw)
            except (KeyError, TypeError, AttributeError) as error:
                return LogPage(events, has_more=False, end=_reading_error(raw, error))
            if place.take(event):
                place.fragments.take(event)
                events.append(event)
        unreadable = page.get("unreadable")
        end = unreadable and SessionUnreadable(unreadable["seq"], unreadable["reason"])
    except (KeyError, TypeError, ValueError) as error:
        raise MalformedAnswer("a page of the log", repr(error)) from error
    place.log = page.get("log", place.log)
    place.seq = max(place.seq or 0, seq)
    return LogPage(events, has_more, end or None)


def _reading_error(raw: Any, error: Exception) -> MalformedAnswer:  # noqa: ANN401 - any JSON
    """The error of an event in a page, with its place if the event says so."""
    durable = raw.get("durable") if isinstance(raw, dict) else None
    seq = durable.get("seq") if isinstance(durable, dict) else None
    return MalformedAnswer("an event", repr(error), seq=seq if isinstance(seq, int) else None)
