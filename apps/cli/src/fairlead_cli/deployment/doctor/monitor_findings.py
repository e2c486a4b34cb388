"""What `fairlead doctor` finds at the monitoring address of a nats-server, and how to repair it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from fairlead_cli.checks import Finding

CLOCK_S_MAX: Final = 5.0


def check_durability(varz: Mapping[str, Any]) -> Finding:
    """Does nats-server sync a commit to disk before it acknowledges? Read from `/varz`."""
    jetstream = varz.get("jetstream") or {}
    settings = jetstream.get("config") or {}
    if settings.get("sync_always"):
        return Finding("sync", "ok", "sync_always: an acknowledged commit is on disk")
    return Finding(
        "sync",
        "warn",
        "sync_interval is not `always`: a power failure may lose acknowledged commits",
        "set `sync_interval: always` in the jetstream block of every nats-server",
    )


def check_clock(varz: Mapping[str, Any], now: datetime) -> Finding:
    """Has a nats-server the time of this machine? Read from `/varz`."""
    name = str(varz.get("server_name", "nats-server"))
    ahead_s = (datetime.fromisoformat(str(varz["now"])) - now).total_seconds()
    if abs(ahead_s) <= CLOCK_S_MAX:
        return Finding("clock", "ok", f"{name} has the time of this machine")
    which = "ahead of" if ahead_s > 0 else "behind"
    detail = f"the clock of {name} is {abs(ahead_s):,.0f} s {which} that of this machine"
    mend = "keep both clocks right (NTP): timers, expiries and ages go by them, the log does not"
    return Finding("clock", "warn", detail, mend)
