"""`core/date`: the calendar date where the host is, or in the session's time zone."""

from datetime import date, datetime
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from fairlead_schema.context import ObservedSource

KEY: Final = "core/date"
KEPT_MAX: Final = 8


def today(timezone: str | None) -> date:
    """The date now. Raises KeyError or ValueError for a time zone that is not known here."""
    now = datetime.now().astimezone()
    return (now if timezone is None else now.astimezone(ZoneInfo(timezone))).date()


@lru_cache(KEPT_MAX)
def observe(today: date) -> ObservedSource:
    """The date without a time, so that the source changes once a day."""
    text = today.strftime("%a %b %d %Y")
    return ObservedSource(
        key=KEY,
        value=today.isoformat(),
        baseline=f"Today's date: {text}",
        update=f"The date has changed. Today's date: {text}",
    )
