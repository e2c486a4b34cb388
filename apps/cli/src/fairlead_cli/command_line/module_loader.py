"""Loads modules without the collector: they stay, and to look at them again only costs time."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def keep_modules() -> Iterator[None]:
    """Keep what is imported in the block from the collector, now and when the process ends."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
