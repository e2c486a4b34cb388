"""Connections of a pool that note why they failed. The pool itself only says that it waited too long."""

import logging
from collections.abc import Callable
from typing import Any, TypeAlias

import psycopg
from psycopg.rows import DictRow
from typing_extensions import override

NoteFailure: TypeAlias = Callable[[psycopg.Error | None], None]
"""Gets the failure of the last connection, or None if it worked."""


def connection_class(note: NoteFailure) -> type[psycopg.AsyncConnection[DictRow]]:
    """The class of the connections of one pool."""
    # The pool would log every try, without a cure. Who notes the failure logs it once.
    logging.getLogger("psycopg.pool").setLevel(logging.ERROR)

    class NotedConnection(psycopg.AsyncConnection[DictRow]):
        """Tells how its connect ended."""

        @classmethod
        @override
        async def connect(cls, conninfo: str = "", **options: Any) -> "NotedConnection":
            try:
                connection = await super().connect(conninfo, **options)
            except psycopg.Error as error:
                note(error)
                raise
            note(None)
            return connection

    return NotedConnection
