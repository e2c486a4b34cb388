"""Screens of terminals that are kept in `screens/`. `FAIRLEAD_KEEP_SCREENS=1` writes them anew."""

import os
from pathlib import Path

from fairlead_testing.terminal import steady

SCREENS = Path(__file__).with_name("screens")


def keep(name: str, screen: str) -> None:
    """Compare a screen with the one that is kept."""
    path = SCREENS / f"{name}.txt"
    if os.environ.get("FAIRLEAD_KEEP_SCREENS"):
        SCREENS.mkdir(exist_ok=True)
        path.write_text(steady(screen))
    assert steady(screen) == path.read_text()
