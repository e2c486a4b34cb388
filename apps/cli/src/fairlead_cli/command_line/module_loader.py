"""Loads modules without what they can do without, and without the collector."""

import gc
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def keep_modules(*, without: str | None = None) -> Iterator[None]:
    """Keep what is imported in the block from the collector, now and when the process ends.

    They stay, and to look at them again only costs time. The package `without` is not found in
    the block, unless it is loaded already. Whoever imports it later gets it. Ctrl-C waits for the
    end of the block: a library that is interrupted while it is loaded raises errors of its own.
    """
    hidden = without if without not in sys.modules else None
    gc.disable()
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        if hidden is not None:
            sys.modules[hidden] = None  # type: ignore[assignment] # None: it cannot be imported
        yield
    finally:
        if hidden is not None:
            del sys.modules[hidden]
        gc.freeze()
        gc.enable()
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def load_http() -> None:
    """Load the connections of HTTP. They load HTTP/2 when a server speaks it, so not before."""
    with keep_modules(without="h2"):
        import httpcore  # noqa: F401, PLC0415


def load_editor_protocol() -> None:
    """Load the Agent Client Protocol. Its 270 models are built when an editor first uses them.

    The package reads the docstring of every field out of its own source, for JSON schemas that
    nobody asks for here. That and the models took two thirds of the start.
    """
    with keep_modules(without="opentelemetry"), _models_built_at_first_use():
        import acp  # noqa: F401, PLC0415


@contextmanager
def _models_built_at_first_use() -> Iterator[None]:
    """Let the models that are defined in the block read no docstrings and be built later."""
    import pydantic  # noqa: PLC0415

    configure = pydantic.ConfigDict
    shared = pydantic.BaseModel.model_config

    def configure_lightly(**options: Any) -> pydantic.ConfigDict:  # noqa: ANN401
        return configure(**(options | {"use_attribute_docstrings": False}))

    setattr(pydantic, "ConfigDict", configure_lightly)  # noqa: B010 - a class to mypy
    shared["defer_build"] = True
    try:
        yield
    finally:
        del shared["defer_build"]
        setattr(pydantic, "ConfigDict", configure)  # noqa: B010
