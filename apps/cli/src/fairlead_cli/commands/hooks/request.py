"""One request of a command to the gateway, and times for people."""

import argparse
from datetime import UTC, datetime
from typing import Any

from fairlead_cli.gateway import run_with_connection


def send(
    args: argparse.Namespace, method: str, path: str, body: dict[str, Any] | None = None
) -> Any:  # noqa: ANN401 - any JSON
    """The data of the answer; None without a body."""
    options = {} if body is None else {"json": body}
    answer = run_with_connection(
        args,
        lambda connection: connection.request(
            method, path, is_repeatable=method == "GET", **options
        ),
    )
    return None if answer is None else answer["data"]


def present(**fields: object) -> dict[str, Any]:
    """The fields that were given."""
    return {name: value for name, value in fields.items() if value is not None}


def show_time(ms: int | None) -> str:
    """A time for people; nothing without one."""
    if ms is None:
        return ""
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds")
