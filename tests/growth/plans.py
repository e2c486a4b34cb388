"""What Postgres did for a statement: the rows that it read, the pages that it touched, how it sorted."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from psycopg import AsyncClientCursor, sql

from fairlead_projector.database import Connection

EXPLAIN: Final = "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) "


@dataclass(frozen=True, slots=True)
class PlanCost:
    """The cost of one statement, without a clock."""

    rows: int
    """Rows that scans read, those that a filter threw away included."""
    buffers: int
    indexes: frozenset[str]
    scanned: frozenset[str]
    """The tables that were read from beginning to end."""
    sorted_rows: int
    """The most rows that one sort received."""


async def explain(
    connection: Connection, statement: bytes | sql.Composed, parameters: Mapping[str, object]
) -> PlanCost:
    """Run a statement with its values and report what it did. Its changes are taken back."""
    text = statement.decode() if isinstance(statement, bytes) else statement.as_string(connection)
    async with connection.transaction(force_rollback=True):
        cursor = AsyncClientCursor(connection)
        await cursor.execute((EXPLAIN + text).encode(), parameters)
        row = await cursor.fetchone()
    assert row is not None, "EXPLAIN answers with one row"
    root = row[0][0]["Plan"]
    nodes = list(_nodes(root))
    return PlanCost(
        rows=sum(map(_rows_read, nodes)),
        buffers=root["Shared Hit Blocks"] + root["Shared Read Blocks"],
        indexes=frozenset(node["Index Name"] for node in nodes if "Index Name" in node),
        scanned=frozenset(
            node["Relation Name"] for node in nodes if node["Node Type"] == "Seq Scan"
        ),
        sorted_rows=max((_rows_sorted(node) for node in nodes), default=0),
    )


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from _nodes(child)


def _rows_read(node: dict[str, Any]) -> int:
    if "Relation Name" not in node or "Scan" not in node["Node Type"]:
        return 0
    removed = ("Rows Removed by Filter", "Rows Removed by Index Recheck")
    rows = node["Actual Rows"] + sum(node.get(name, 0) for name in removed)
    return int(rows * node["Actual Loops"])


def _rows_sorted(node: dict[str, Any]) -> int:
    if node["Node Type"] != "Sort":
        return 0
    return int(sum(child["Actual Rows"] * child["Actual Loops"] for child in node["Plans"]))
