"""Results for programs: one line of JSON each, in the form that docs/guide/cli.md promises."""

import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any


def print_json(value: Mapping[str, Any]) -> None:
    """Print one line at once: a reader of a pipe waits for it."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def print_json_lines(values: Iterable[Mapping[str, Any]]) -> None:
    """Print a line for each value."""
    for value in values:
        print_json(value)
