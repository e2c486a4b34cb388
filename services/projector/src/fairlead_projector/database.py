"""Connections to Postgres, advisory locks, and SQL statements from files."""

from functools import cache
from importlib.resources import files
from typing import Any, Final, TypeAlias

from psycopg import AsyncConnection, AsyncCursor
from psycopg.rows import TupleRow

Connection: TypeAlias = AsyncConnection[TupleRow]

LOCK_SPACE: Final = 0x4641_4952  # "FAIR": the first half of all our advisory lock keys.
MIGRATION_LOCK: Final = 1000
SWEEP_LOCK: Final = 1001
PRESENCE_LOCK: Final = 1002
ASKS_LOCK: Final = 1003


@cache
def query(name: str) -> bytes:
    """The statement in `sql/queries/<name>.sql`."""
    return (files("fairlead_projector") / "sql" / "queries" / f"{name}.sql").read_bytes()


async def connect(dsn: str) -> Connection:
    """A connection that notices a dead peer within seconds. Raises OperationalError."""
    return await AsyncConnection.connect(
        dsn,
        autocommit=True,
        connect_timeout=5,
        application_name="fairlead-projector",
        keepalives_idle=5,
        keepalives_interval=2,
        keepalives_count=3,
        tcp_user_timeout=10_000,
    )


async def try_lock(connection: Connection, key: int) -> bool:
    """Take a lock that ends with the connection. False: another process has the lock."""
    cursor = await connection.execute(query("try_lock"), {"space": LOCK_SPACE, "key": key})
    return await single_cell(cursor) is True


async def unlock(connection: Connection, key: int) -> None:
    """Release a lock of this connection."""
    await connection.execute(query("unlock"), {"space": LOCK_SPACE, "key": key})


async def single_cell(cursor: AsyncCursor[TupleRow]) -> Any:  # noqa: ANN401 - a column of any type
    """The only cell of the only row."""
    row = await cursor.fetchone()
    assert row is not None, "the statement yields one row"
    return row[0]
