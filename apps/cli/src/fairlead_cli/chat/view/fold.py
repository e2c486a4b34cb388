"""Folds the events of one session into what the terminal shows."""

from collections.abc import Mapping
from typing import Final

from fairlead_cli.chat.view.answer_fold import ANSWER_EVENTS
from fairlead_cli.chat.view.ask_fold import ASK_EVENTS
from fairlead_cli.chat.view.call_fold import CALL_EVENTS
from fairlead_cli.chat.view.session_fold import SESSION_EVENTS
from fairlead_cli.chat.view.session_view import EventHandler, SessionView
from fairlead_client.received_event import ReceivedEvent

_HANDLERS: Final[Mapping[str, EventHandler]] = {
    **SESSION_EVENTS,
    **ANSWER_EVENTS,
    **CALL_EVENTS,
    **ASK_EVENTS,
}


def fold(view: SessionView, event: ReceivedEvent) -> None:
    """Take one event. An event of a type that this release does not know changes nothing."""
    handler = _HANDLERS.get(event.type)
    if handler is None:
        return
    try:
        handler(view, event.data)
    except (KeyError, TypeError, ValueError, AttributeError):
        # A newer server may say it in another form. The rest of the session is still worth showing.
        view.notice(f"unread/{event.id}", f"An event of the type {event.type} cannot be shown.")
