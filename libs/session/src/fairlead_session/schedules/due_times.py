"""When a schedule is due. Time is an argument, and daylight saving is that of the schedule's zone.

A cron time in the hour that a change of clocks leaves out is due right after it. A time in the hour that
comes twice is due once; an expression that runs every hour is due in both (as cron of Debian does).
"""

from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from functools import cache
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from cronsim import CronSim, CronSimError

from fairlead_schema.schedules.record import ScheduleTiming

FIELDS: Final = "minute, hour, day of month, month, day of week; seconds may come first"


class TimingInvalid(ValueError):
    """A cron expression or a time zone cannot be used. `field` names which."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(reason)
        self.field = field


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What to do about a schedule now."""

    run: int | None
    """The due time to run for."""
    skip: int | None
    """The last of the due times that were missed and stay so."""
    next: int | None
    """When to look again; None: never."""


def check_timing(timing: ScheduleTiming) -> None:
    """Refuse a time zone or an expression that nothing fits. Raises TimingInvalid."""
    _zone(timing)
    if timing.cron is None:
        return
    try:
        simulation = CronSim(timing.cron, datetime(2024, 1, 1, tzinfo=_zone(timing)))
    except CronSimError as error:
        text = f"{timing.cron!r} is no cron expression ({FIELDS}): {error}"
        raise TimingInvalid("cron", text) from error
    if next(simulation, None) is None:
        raise TimingInvalid("cron", f"{timing.cron!r} is never due")


def next_due(timing: ScheduleTiming, after_ms: int) -> int | None:
    """The first due time after a moment; None if there is none."""
    if timing.cron is None:
        return timing.at if timing.at is not None and timing.at > after_ms else None
    return _to_ms(next(CronSim(timing.cron, _moment(timing, after_ms)), None))


def last_due(timing: ScheduleTiming, until_ms: int) -> int | None:
    """The last due time up to a moment; None if there is none."""
    if timing.cron is None:
        return timing.at if timing.at is not None and timing.at <= until_ms else None
    # The iteration goes back from a moment that it leaves out, in steps of seconds.
    start = _moment(timing, until_ms // 1000 * 1000 + 1000)
    return _to_ms(next(CronSim(timing.cron, start, reverse=True), None))


def plan_run(timing: ScheduleTiming, *, handled_ms: int, now_ms: int, late_ms: int) -> RunPlan:
    """Which due time after those that are handled to run now, and when to look again.

    Of several missed times only the last one counts. A time is missed after `late_ms`.
    """
    coming = next_due(timing, max(now_ms, handled_ms))
    due = last_due(timing, now_ms)
    if due is None or due <= handled_ms:
        return RunPlan(None, None, coming)
    if timing.missed == "skip" and now_ms - due > late_ms:
        return RunPlan(None, due, coming)
    return RunPlan(due, None, coming)


def _zone(timing: ScheduleTiming) -> ZoneInfo:
    try:
        return ZoneInfo(timing.timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        text = f"unknown time zone: {timing.timezone}{_suggest_zone(timing.timezone)}"
        raise TimingInvalid("timezone", text) from error


def _suggest_zone(name: str) -> str:
    """The zone that was probably meant, whatever its letters."""
    zones = _zones()
    found = get_close_matches(name.lower(), zones, n=1, cutoff=0.8)
    return f" (did you mean {zones[found[0]]}?)" if found else ""


@cache
def _zones() -> dict[str, str]:
    """The zones by their names in small letters. To find all of them takes many reads of the disk."""
    return {zone.lower(): zone for zone in available_timezones()}


def _moment(timing: ScheduleTiming, ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, _zone(timing))


def _to_ms(moment: datetime | None) -> int | None:
    return None if moment is None else int(moment.timestamp() * 1000)
