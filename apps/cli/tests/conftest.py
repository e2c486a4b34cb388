"""A server with one answer, for tests of commands."""

from collections.abc import Iterator
from http.server import HTTPServer
from threading import Thread

import pytest
from typing_extensions import override

from apps.cli.tests.answering_server import AnsweringServer, Answers


class QuietServer(HTTPServer):
    """A client that leaves early is no news."""

    @override
    def handle_error(self, request: object, client_address: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[AnsweringServer]:
    handler = type("Answers", (Answers,), {"by_path": {}})
    listening = QuietServer(("127.0.0.1", 0), handler)
    thread = Thread(target=listening.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield AnsweringServer(f"http://127.0.0.1:{listening.server_port}", handler)
    listening.shutdown()
    listening.server_close()
    thread.join()
