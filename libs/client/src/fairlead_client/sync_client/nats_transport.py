# Generated from async_client/nats_transport.py by `make client`: change that file.
"""Sessions over NATS, as a principal of a tenant.

The log says what there is, and the feed is a hint that it has news. So nothing is missed and nothing
comes twice, whatever happens to a message. Only live fragments come as they are sent.
"""

from collections.abc import Generator
from typing import Any, Final

from pydantic_core import from_json

from fairlead_client.answers.answer_models import field_of
from fairlead_client.answers.log_page import take_page
from fairlead_client.deadline import UNLIMITED, Deadline
from fairlead_client.errors import MalformedAnswer, NotOverNats, ServerAway, refusal_of_wire
from fairlead_client.fragment_filter import FragmentOrder
from fairlead_client.nats_link.mailbox import HeardMessage
from fairlead_client.nats_login import CONNECT_S
from fairlead_client.prompt_input import body_of
from fairlead_client.received_event import ReceivedEvent, fragment_of, parse_event
from fairlead_client.stream_place import StreamPlace
from fairlead_client.sync_client.event_stream import CAUGHT_UP, follow_events
from fairlead_client.sync_client.nats_connection import TenantLink
from fairlead_client.sync_client.nats_export import export_session
from fairlead_client.sync_client.repetition import repeat
from fairlead_schema import subjects
from fairlead_schema.errors import ServiceUnavailable, WireError
from fairlead_schema.identity.verbs import VERBS
from fairlead_schema.ids import SessionId
from fairlead_schema.subjects import Address

ANSWER_S: Final = 2.0
"""How long an answer may take before a command that may be repeated is sent again.

Each repeat waits twice as long: nobody tells us that ingest is away, and a busy one needs no more load.
"""
ANSWER_S_MAX: Final = 30.0
LATE_PAGES_MAX: Final = 3
"""A follower waits at most eight times as long: an ingest that is away says nothing."""
WAIT_S: Final = 5.0
"""How long one request waits for a session to rest. The next request waits on.

It is short, because an ingest that died with the request says nothing.
"""
LOOK_S: Final = 15.0
"""After so much silence the log is read again: a hint may be lost."""
HEARTBEAT: Final = "heartbeat"
_FRAGMENTS: Final = f"{subjects.ROOT}.delta."
_ERASED: Final = ".session.purged"
_INSIDE: Final = {
    "session.pending": "inputs",
    "permission.list": "requests",
    "question.list": "requests",
}
"""The field of the answer that the HTTP API shows as its data."""

_ONLY_HTTP: Final = frozenset({"revert.stage", "revert.clear"})
"""The gateway waits for the runner and answers with what it did. Over NATS the verb only asks for it."""


class NatsTransport:
    """The services behind NATS, as the client needs them."""

    def __init__(self, link: TenantLink, *, patience_s: float | None) -> None:
        self._link = link
        self.patience_s = patience_s
        self.failure: Exception | None = None
        """Why a followed stream is interrupted now."""

    def close(self) -> None:
        self._link.close()

    def send(self, verb: str, body: dict[str, Any], *, deadline: Deadline = UNLIMITED) -> Any:  # noqa: ANN401 - any JSON
        """The data of the answer to a command, which is repeated where that is safe. Raises NotInTime."""
        if verb in _ONLY_HTTP:
            raise NotOverNats(verb)
        if verb == "permission.reply" and body["reply"] == "always":
            # Over NATS each verb has one scope, and this answer needs another one.
            verb = "permission.approve"
        data = self._ask(verb, body, deadline=deadline)
        return field_of(data, _INSIDE[verb]) if verb in _INSIDE else data

    def follow(
        self, session_id: SessionId, *, after: int | None, with_notices: bool, deadline: Deadline
    ) -> Generator[ReceivedEvent | None, None, None]:
        """Every event after a seq as it comes. None: nothing is new at this moment."""
        return follow_events(self, StreamPlace(session_id, after, with_notices, deadline))

    def read(
        self,
        session_id: SessionId,
        *,
        after: int,
        with_notices: bool,
        deadline: Deadline = UNLIMITED,
    ) -> Generator[ReceivedEvent, None, None]:
        """Every event after a seq that is in the log now."""
        place = StreamPlace(session_id, after, with_notices, deadline)
        has_more = True
        while has_more:
            answer = self._ask("session.history", place.command, deadline=deadline)
            events, has_more, end = take_page(place, answer)
            yield from events
            if end is not None:
                raise end

    def read_stream(self, place: StreamPlace) -> Generator[ReceivedEvent | str, None, None]:
        """Events and comments, as long as the connection lasts."""
        at = Address(self._link.login.tenant, place.session_id)
        wanted = [subjects.event(at, ">"), *([subjects.delta(at)] if place.with_notices else [])]
        order, comment = FragmentOrder(), CAUGHT_UP
        connect_s = place.deadline.left_s(CONNECT_S)
        with self._link.listen(*wanted, timeout_s=connect_s) as mailbox:
            while True:
                has_more = True
                while has_more:
                    events, has_more, end = take_page(place, self._ask_page(place))
                    yield from events
                    if end is not None:
                        raise end
                if comment:
                    yield comment
                comment, is_behind = "", False
                while not is_behind:
                    place.deadline.check()
                    heard = mailbox.take(place.deadline.left_s(LOOK_S))
                    if not heard:
                        comment, is_behind = HEARTBEAT, True
                    for message in heard:
                        item = _hear(message, place, order)
                        if item is None:
                            is_behind = True
                        elif (news := place.fragments.take(item)) is not None:
                            yield news

    def _ask_page(self, place: StreamPlace) -> Any:  # noqa: ANN401 - any JSON
        """The next page of the log. A busy ingest gets more time for it, each time that it was late."""
        timeout_s = ANSWER_S * (1 << place.late_pages)
        try:
            page = self._ask_once("session.history", place.command, timeout_s)
        except ServerAway:
            place.late_pages = min(place.late_pages + 1, LATE_PAGES_MAX)
            raise
        place.late_pages = 0
        return page

    def note_failure(self, failure: Exception | None) -> None:
        """Keep why a followed stream is interrupted now; None: it is not."""
        self.failure = failure

    def renew_token(self) -> bool:
        """Whether there are other credentials than those that were refused."""
        return self._link.renew_proof()

    def wait(self, session_id: SessionId, deadline: Deadline) -> None:
        """Wait until the session rests. Raises NotInTime."""
        while True:
            wait_s = deadline.left_s(WAIT_S)
            body = {"sessionID": session_id, "timeout_s": wait_s}
            try:
                self._ask("session.wait", body, more_s=wait_s, deadline=deadline)
            except ServiceUnavailable as refusal:
                if refusal.body.service != "session.wait":
                    raise
            else:
                return
            deadline.check()

    def export(self, session_id: SessionId, *, tree: bool) -> Generator[bytes, None, None]:
        """The pieces of an exported file. The file is complete only with its own last line."""
        return export_session(self._ask, self._link.login, session_id, tree=tree)

    def request(
        self,
        method: str,
        path: str,
        *,
        params: dict[str, Any] | None = None,  # noqa: ARG002 - of the HTTP API
        json: object = None,  # noqa: ARG002
        content: bytes | None = None,  # noqa: ARG002
    ) -> Any:  # noqa: ANN401 - any JSON
        """Only the HTTP API has other operations. Raises NotOverNats."""
        raise NotOverNats(f"{method} {path}")

    def _ask(
        self,
        verb: str,
        body: dict[str, Any],
        *,
        more_s: float = 0.0,
        deadline: Deadline = UNLIMITED,
    ) -> Any:  # noqa: ANN401 - any JSON
        """The data of the answer. A verb that may be repeated is repeated, within the patience."""
        is_repeatable = VERBS[verb].repeatable
        timeout_s = ANSWER_S + more_s if is_repeatable else ANSWER_S_MAX

        def send() -> Any:  # noqa: ANN401 - any JSON
            nonlocal timeout_s
            now_s, timeout_s = timeout_s, min(2 * timeout_s, ANSWER_S_MAX)
            return self._ask_once(verb, body, deadline.request_s(now_s))

        return repeat(
            send,
            is_repeatable=is_repeatable,
            patience_s=self.patience_s,
            deadline=deadline,
            renew=self.renew_token,
            verb=verb,
        )

    def _ask_once(self, verb: str, body: dict[str, Any], timeout_s: float) -> Any:  # noqa: ANN401
        login = self._link.login
        subject = subjects.as_principal(login.tenant, login.principal, verb)
        reply = self._link.request(subject, body_of(body), timeout_s=timeout_s)
        try:
            answer = from_json(reply)
            error, data = answer.get("error"), answer.get("data")
            refused = None if error is None else WireError.model_validate(error)
        except (ValueError, AttributeError) as problem:
            raise MalformedAnswer(f"the answer to {verb}", str(problem)) from problem
        if refused is not None:
            raise refusal_of_wire(refused)
        return data


def _hear(message: HeardMessage, place: StreamPlace, order: FragmentOrder) -> ReceivedEvent | None:
    """A fragment, or the last word of an erased session; None: the log has something new."""
    if message.subject.startswith(_FRAGMENTS):
        fragment = fragment_of(message.data, place.session_id)
        if order.is_after_gap(fragment):
            place.fragments.reconnect()
        return fragment
    if message.subject.endswith(_ERASED):
        return parse_event(message.data)
    return None
