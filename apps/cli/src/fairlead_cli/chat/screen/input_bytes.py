"""Lets bytes from the terminal be wrong: the library's own decoder would end the application."""

import codecs
from functools import partial

from textual.drivers import linux_driver


def tolerate_broken_input() -> None:
    """Read broken UTF-8 as replacement characters."""
    decoder = partial(codecs.getincrementaldecoder("utf-8"), errors="replace")
    linux_driver.getincrementaldecoder = lambda _name: decoder  # type: ignore[attr-defined]
