"""Names of streams and subjects that adapters use and grants allow. Grants load no adapter for them."""

from typing import Final

from fairlead_eventlog.streams import TOOLS, WAKES

QUEUES: Final = (TOOLS.name, WAKES.name)
"""A request stays in these while its work runs, so only the consumer knows what nobody has taken."""

LAST_BACKUP: Final = "$KV.fairlead-log.backup"
FAILED_BACKUP: Final = "$KV.fairlead-log.backup-failed"


def copy_name(stream: str) -> str:
    """The stream that holds the messages while their own stream is made anew."""
    return f"{stream}-MOVED"
