"""How long a process leaves work alone whose session only a newer release can read."""

from typing import Final

HOLD_S: Final = 1.0
HOLD_S_MAX: Final = 30.0
_DOUBLINGS_MAX: Final = 5


def hold_s(deliveries: int) -> float:
    """The pause before the next delivery: short at first, because a newer process may get it."""
    return min(HOLD_S_MAX, HOLD_S * 2.0 ** min(deliveries - 1, _DOUBLINGS_MAX))
