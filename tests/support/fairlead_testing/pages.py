"""A web server that a test owns: what it answers can change, and it counts what it was asked."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from typing_extensions import override


@dataclass
class Pages:
    """What each path answers: its content, or a status. Everything else is not found."""

    said: dict[str, bytes | int] = field(default_factory=dict)
    redirects: dict[str, str] = field(default_factory=dict)
    """Where a path leads instead of an answer."""
    asked: list[str] = field(default_factory=list)
    url: str = ""
    held: threading.Event | None = None
    """While set to an event that is not, nothing is answered."""


@contextmanager
def serve_pages() -> Iterator[Pages]:
    """Pages on a free loopback port, for the length of a block."""
    pages = Pages()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            pages.asked.append(self.path)
            if pages.held is not None:
                pages.held.wait(20)
            redirect = pages.redirects.get(self.path)
            said = 302 if redirect else pages.said.get(self.path, 404)
            body = said if isinstance(said, bytes) else b""
            try:
                self.send_response(said if isinstance(said, int) else 200)
                self.send_header("Content-Length", str(len(body)))
                if redirect:
                    self.send_header("Location", redirect)
                self.end_headers()
                self.wfile.write(body)
            except OSError:
                self.close_connection = True

        @override
        def log_message(self, *_said: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    pages.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield pages
    finally:
        if pages.held is not None:
            pages.held.set()
        server.shutdown()
        thread.join()
        server.server_close()
