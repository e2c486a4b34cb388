"""A server on a real socket that has one answer for everything."""

import json
import time
from http.server import BaseHTTPRequestHandler
from typing import Any, ClassVar

from typing_extensions import override

from fairlead_schema.errors import Refused


class Answers(BaseHTTPRequestHandler):
    """Answers every request with what the test set."""

    status, mime, body = 200, "application/json", b"{}"
    by_path: ClassVar[dict[str, bytes]] = {}
    later: ClassVar[tuple[int, str, bytes] | None] = None
    pause_s: ClassVar[float] = 0.0

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", "0")))
        time.sleep(self.pause_s)
        body = self.by_path.get(self.path.partition("?")[0], self.body)
        self.send_response(self.status)
        self.send_header("content-type", self.mime)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        kind = type(self)
        if kind.later is not None:
            (kind.status, kind.mime, kind.body), kind.later = kind.later, None

    do_GET = do_POST = do_PATCH = do_DELETE = _answer  # noqa: N815 - the names of the base class

    @override
    def log_message(self, format: str, *args: object) -> None:
        pass


class AnsweringServer:
    """A server on a real socket with one answer for everything, unless a path has its own."""

    def __init__(self, url: str, handler: type[Answers]) -> None:
        self.url = url
        self._handler = handler

    def answer(self, body: Any, status: int = 200, mime: str = "application/json") -> None:  # noqa: ANN401
        self._handler.body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self._handler.status, self._handler.mime = status, mime

    def answer_at(self, path: str, body: object) -> None:
        """Answer the requests of one path with an object."""
        self._handler.by_path[path] = json.dumps(body).encode()

    def take_time(self, seconds: float) -> None:
        """Answer later."""
        self._handler.pause_s = seconds

    def refuse_later(self, refusal: Refused) -> None:
        """Refuse whatever comes after the next request."""
        body = json.dumps(refusal.body.wire()).encode()
        self._handler.later = (refusal.status, "application/json", body)

    def refuse(self, refusal: Refused) -> None:
        self.answer(refusal.body.wire(), refusal.status)
