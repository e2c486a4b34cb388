"""One request of a command to the gateway, and times for people."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from fairlead_cli.errors import OtherRelease
from fairlead_cli.gateway import gateway_of, run_with_connection
from fairlead_client.answers.answer_models import data_of
from fairlead_client.errors import MalformedAnswer


def send(
    args: argparse.Namespace,
    method: str,
    path: str,
    body: dict[str, Any] | None = None,
    *,
    timeout_s: float | None = None,
) -> Any:  # noqa: ANN401 - any JSON
    """The data of the answer; None without a body."""
    options = present(json=body, timeout=timeout_s)
    answer = run_with_connection(
        args,
        lambda connection: connection.request(
            method, path, is_repeatable=method == "GET", **options
        ),
    )
    return None if answer is None else data_of(answer)


@contextmanager
def explain_answers(args: argparse.Namespace) -> Iterator[None]:
    """Say of an answer that lacks what it always has that it comes from another release."""
    try:
        yield
    except (MalformedAnswer, AttributeError, LookupError, TypeError) as error:
        raise OtherRelease(gateway_of(args).url, f"{type(error).__name__}: {error}") from error


def present(**fields: object) -> dict[str, Any]:
    """The fields that were given."""
    return {name: value for name, value in fields.items() if value is not None}


def show_time(ms: int | None) -> str:
    """A time for people; nothing without one."""
    if ms is None:
        return ""
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds")
