"""The views that readers use have the columns that the contract lists."""

import re
from pathlib import Path

import psycopg
import pytest

from fairlead_projector import database
from fairlead_projector.migrations import migrate

pytestmark = pytest.mark.integration

CONTRACTS = Path(__file__).parents[3] / "docs/contracts.md"
ROW = re.compile(r"(?m)^\| `read\.(\w+)` \| [^|]+ \| ([^|]+) \|$")
COLUMNS = """
    SELECT table_name, column_name FROM information_schema.columns
     WHERE table_schema = 'read' ORDER BY table_name, ordinal_position
"""


async def test_every_view_has_the_columns_of_its_row(dsn: str) -> None:
    async with await database.connect(dsn) as owner:
        await migrate(owner)
    with psycopg.connect(dsn) as connection:
        columns: dict[str, set[str]] = {}
        for view, column in connection.execute(COLUMNS):
            columns.setdefault(view, set()).add(column)

    listed = {view: set(names.split(", ")) for view, names in ROW.findall(CONTRACTS.read_text())}

    assert listed == columns
