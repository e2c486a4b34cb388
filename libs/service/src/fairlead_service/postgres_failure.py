"""Says in one line why Postgres cannot be used, and what helps."""

import re
from typing import Final

# What libpq and the server say, and the cure. The first that fits counts.
_CURES: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), cure)
    for pattern, cure in (
        (
            r"password authentication failed|no password supplied|fe_sendauth",
            "correct the password in postgres.dsn or its passfile, or run `fairlead migrate --create-roles`",
        ),
        (
            r'role "[^"]*" does not exist',
            "run `fairlead migrate --create-roles`, or correct the user in postgres.dsn",
        ),
        (r'database "[^"]*" does not exist', "create it, or correct its name in postgres.dsn"),
        (
            r"permission denied for database|no pg_hba\.conf entry",
            "run `fairlead migrate --create-roles`, or let the server accept this role from here",
        ),
        (
            r"certificate|SSL",
            "correct sslmode and sslrootcert in postgres.dsn, or renew the server's certificate",
        ),
        (
            r"resolve|translate host|name or service|nodename",
            "correct the host in postgres.dsn",
        ),
        (
            r"missing \"=\"|invalid (dsn|integer|connection option|URI|port)|conninfo|extra key",
            "write postgres.dsn as postgresql://USER@HOST:PORT/DATABASE",
        ),
        (
            r"refused|timeout|timed out|no route|unreachable|no such file|starting up|shutting down",
            "start Postgres, or correct host and port in postgres.dsn; services try again by themselves",
        ),
        (r"too many (clients|connections)|remaining connection slots", "raise max_connections"),
        (
            r"no space left|disk full",
            "free disk space of Postgres; services try again by themselves",
        ),
    )
)
_TRIED: Final = re.compile(r"^Multiple connection attempts failed.*?were:\s*", re.DOTALL)


def explain_postgres_failure(error: BaseException) -> str:
    """What went wrong, in one line, with its cure. It names no password: the server never says one."""
    text = _TRIED.sub("", str(error).strip()) or type(error).__name__
    line = " ".join(text.split())
    cure = next((cure for pattern, cure in _CURES if pattern.search(line)), "run `fairlead doctor`")
    return f"Postgres cannot be used ({line}): {cure}"
