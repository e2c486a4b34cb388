"""The SQL of the gateway: one statement per file, loaded once."""

from functools import cache
from importlib.resources import files


@cache
def query(name: str) -> bytes:
    """The statement in `sql/queries/<name>.sql`."""
    return (files("fairlead_gateway") / "sql" / "queries" / f"{name}.sql").read_bytes()
