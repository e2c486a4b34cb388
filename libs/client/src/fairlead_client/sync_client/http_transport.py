# Generated from async_client/http_transport.py by `make client`: change that file.
"""Sessions over HTTP and server-sent events."""

from collections.abc import Generator
from contextlib import closing
from typing import Any, Final

from fairlead_client.answers.answer_models import data_of
from fairlead_client.deadline import UNLIMITED, Deadline
from fairlead_client.errors import ClientError
from fairlead_client.prompt_input import body_of
from fairlead_client.received_event import ReceivedEvent
from fairlead_client.retry_policy import Interruption, is_passing, pause_s
from fairlead_client.routes import route_of
from fairlead_client.stream_place import StreamPlace
from fairlead_client.sync_client.event_stream import follow_events, read_events
from fairlead_client.sync_client.http_connection import HttpConnection
from fairlead_client.sync_client.http_stream import read_response
from fairlead_client.sync_client.runtime import sleep
from fairlead_schema.errors import Refused, ServiceUnavailable, Unauthorized
from fairlead_schema.identity.verbs import VERBS
from fairlead_schema.ids import SessionId

WAIT_S: Final = 25.0
"""How long one request waits for a session to rest. The next request waits on."""
EXPORT_SILENCE_S: Final = 60.0


class HttpTransport:
    """A gateway, as the client needs it."""

    def __init__(self, connection: HttpConnection) -> None:
        self._connection = connection

    def close(self) -> None:
        self._connection.close()

    def send(self, verb: str, body: dict[str, Any], *, deadline: Deadline = UNLIMITED) -> Any:  # noqa: ANN401 - any JSON
        """The data of the answer to a command, which is repeated where that is safe. Raises NotInTime."""
        route, rest = route_of(verb, body)
        options = {} if route.method in {"GET", "DELETE"} else _json_content(rest)
        answer = self._connection.request(
            route.method,
            route.path,
            is_repeatable=VERBS[verb].repeatable,
            deadline=deadline,
            verb=verb,
            **options,
        )
        return None if answer is None else data_of(answer)

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
        return read_events(self, StreamPlace(session_id, after, with_notices, deadline))

    @property
    def patience_s(self) -> float | None:
        """How long the first answer may take."""
        return self._connection.patience_s

    def read_stream(self, place: StreamPlace) -> Generator[ReceivedEvent | str, None, None]:
        """The events and comments of one response. Raises the error that the stream ends with."""
        return read_response(self._connection, place)

    def note_failure(self, failure: Exception | None) -> None:
        """Keep why a followed stream is interrupted now; None: it is not."""
        self._connection.failure = failure
        self._connection.was_open |= failure is None

    def renew_token(self) -> bool:
        """Read the token again after a refusal. False: there is no other one."""
        return self._connection.renew_token()

    def wait(self, session_id: SessionId, deadline: Deadline) -> None:
        """Wait until the session rests. Raises NotInTime."""
        path = f"/api/session/{session_id}/wait"
        while True:
            params = {"timeout_s": f"{deadline.left_s(WAIT_S):.3f}"}
            try:
                self._connection.request(
                    "POST", path, is_repeatable=True, deadline=deadline, params=params
                )
            except ServiceUnavailable as refusal:
                if refusal.body.service != "session.wait":
                    raise
            else:
                return
            deadline.check()

    def export(self, session_id: SessionId, *, tree: bool) -> Generator[bytes, None, None]:
        """The pieces of an exported file. The file is complete only with its own last line."""
        interruption, is_renewed, has_begun = Interruption(), False, False
        while True:
            try:
                with closing(self._export_once(session_id, tree=tree)) as pieces:
                    for piece in pieces:
                        has_begun = True
                        yield piece
            except Unauthorized:
                # The server refuses before the first piece.
                if is_renewed or not self._connection.renew_token():
                    raise
                is_renewed = True
            except (ClientError, Refused) as error:
                # Another file has another time in its first line, so nobody can go on with it.
                is_over = has_begun or interruption.has_lasted(error, self.patience_s)
                if is_over or not is_passing(error, is_repeatable=True):
                    raise
                sleep(pause_s(interruption.failures - 1, error))
            else:
                return

    def _export_once(self, session_id: SessionId, *, tree: bool) -> Generator[bytes, None, None]:
        path, params = f"/api/session/{session_id}/export", {"tree": "true"} if tree else {}
        with self._connection.open(
            path, params, media="application/", read_s=EXPORT_SILENCE_S
        ) as response:
            yield from self._connection.pieces_of(response)

    def request(
        self,
        method: str,
        path: str,
        *,
        params: dict[str, Any] | None = None,
        json: object = None,
        content: bytes | None = None,
    ) -> Any:  # noqa: ANN401 - any JSON
        """Any other operation of the gateway. Only a GET and an upload are repeated."""
        options: dict[str, Any] = {"params": params} | ({} if json is None else _json_content(json))
        if content is not None:
            media = {"content-type": "application/octet-stream"}
            options |= {"content": content, "headers": media}
        is_repeatable = method == "GET" or content is not None
        return self._connection.request(method, path, is_repeatable=is_repeatable, **options)


def _json_content(body: object) -> dict[str, Any]:
    """What httpx needs to send JSON. Raises InvalidRequest for what no JSON can carry."""
    return {"content": body_of(body), "headers": {"content-type": "application/json"}}
