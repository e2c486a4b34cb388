"""`core/date`: the calendar date where the host is."""

from datetime import date
from typing import Final

from fairlead_schema.context import Observed

KEY: Final = "core/date"


def observe(today: date) -> Observed:
    """The day, without a time: it changes once a day and never within one."""
    text = today.strftime("%a %b %d %Y")
    return Observed(
        key=KEY,
        value=today.isoformat(),
        baseline=f"Today's date: {text}",
        update=f"The date has changed. Today's date: {text}",
    )
