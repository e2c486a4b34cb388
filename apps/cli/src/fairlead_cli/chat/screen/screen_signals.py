"""What signals do to a screen: it ends and leaves the terminal as it was, or it is suspended and returns."""

import asyncio
import os
import signal
from collections.abc import Callable
from typing import Any, Final

from textual.app import App

ENDINGS: Final = (signal.SIGTERM, signal.SIGHUP)
GRACE_S: Final = 3.0
_SIGNALLED: Final = 128


def leave_on_signals(leave: Callable[[int], None]) -> None:
    """Let `leave` end the screen with the exit code of a signal. A terminal that is gone gets little time."""
    loop = asyncio.get_running_loop()

    def take(number: int) -> None:
        loop.call_later(GRACE_S, os._exit, _SIGNALLED + number)
        leave(_SIGNALLED + number)

    for number in ENDINGS:
        loop.add_signal_handler(number, take, number)


def suspend() -> bool:
    """Give the terminal back to the shell, until `fg`. False: there is no shell that could say `fg`."""
    if os.getpgrp() == os.getsid(0):
        return False
    # The group has what started this program too: the shell waits for all of it.
    os.killpg(os.getpgrp(), signal.SIGTSTP)
    return True


def draw_after_suspension(app: App[Any]) -> None:
    """Draw the whole screen when the program comes back."""

    def draw(resumed: App[Any]) -> None:
        resumed.refresh(layout=True)

    app.app_resume_signal.subscribe(app, draw)
