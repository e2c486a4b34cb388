"""Whether a NATS server has what Fairlead needs, from what it says of itself at each connection."""

import re
from collections.abc import Mapping
from typing import Any, Final

from fairlead_eventlog.errors import ServerUnfit
from fairlead_eventlog.streams import COMMIT_BYTES_MAX

VERSION_MIN: Final = (2, 12)
"""The first release with scheduled messages and with streams that are persisted lazily."""
_VERSION: Final = re.compile(r"^v?(\d+)\.(\d+)")


def find_unfit(server: str, info: Mapping[str, Any]) -> ServerUnfit | None:
    """The first thing that a server lacks, with its cure; None if it has all."""
    version = str(info.get("version", ""))
    if (number := _parse_version(version)) is not None and number < VERSION_MIN:
        needed = ".".join(str(part) for part in VERSION_MIN)
        return ServerUnfit(
            server, f"is nats-server {version}", f"install nats-server {needed} or later"
        )
    # A server of a cluster may leave JetStream to the others.
    if not info.get("jetstream") and not info.get("cluster"):
        cure = "add a `jetstream` block to its configuration, and start it again"
        return ServerUnfit(server, "runs without JetStream", cure)
    payload = int(info.get("max_payload", 0))
    if payload < COMMIT_BYTES_MAX:
        cause = f"takes messages of {payload:,} bytes, and a commit may have {COMMIT_BYTES_MAX:,}"
        cure = "set `max_payload: 8MB` in the configuration of every server, and restart them"
        return ServerUnfit(server, cause, cure)
    return None


def _parse_version(text: str) -> tuple[int, int] | None:
    """The first two numbers of a version; None for a build without a number."""
    match = _VERSION.match(text)
    return None if match is None else (int(match[1]), int(match[2]))
