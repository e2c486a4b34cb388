"""Loads modules without what they can do without, and without the collector."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def keep_modules(*, without: str | None = None) -> Iterator[None]:
    """Keep what is imported in the block from the collector, now and when the process ends.

    They stay, and to look at them again only costs time. The package `without` is not found in
    the block, unless it is loaded already. Whoever imports it later gets it.
    """
    hidden = without if without not in sys.modules else None
    gc.disable()
    try:
        if hidden is not None:
            sys.modules[hidden] = None  # type: ignore[assignment] # None: it cannot be imported
        yield
    finally:
        if hidden is not None:
            del sys.modules[hidden]
        gc.freeze()
        gc.enable()


def load_http() -> None:
    """Load the connections of HTTP. They load HTTP/2 when a server speaks it, so not before."""
    with keep_modules(without="h2"):
        import httpcore  # noqa: F401, PLC0415
