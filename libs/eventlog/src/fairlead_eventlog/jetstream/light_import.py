"""Imports a module without what it can do without, to save memory and time at the start."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType

from typing_extensions import override


@contextmanager
def hide_package(name: str) -> Iterator[None]:
    """Import as if a package were not installed, unless somebody has imported that already."""
    is_hidden = name not in sys.modules
    if is_hidden:
        # A None refuses the import.
        sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        if is_hidden:
            del sys.modules[name]


class DeferredModule(ModuleType):
    """Stands for a module until somebody uses it. Then the module takes its place."""

    @override
    def __getattr__(self, name: str) -> object:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


@contextmanager
def defer_module(name: str) -> Iterator[None]:
    """Import without a module that is loaded at its first use, unless it is loaded already."""
    if name in sys.modules:
        yield
        return
    deferred = sys.modules[name] = DeferredModule(name)
    yield
    package, _, attribute = name.rpartition(".")
    setattr(sys.modules[package], attribute, deferred)


def allow_web_sockets(servers: Iterable[str]) -> None:
    """Give nats-py what it needs for web sockets, if an address asks for them."""
    if any(server.startswith(("ws://", "wss://")) for server in servers):
        transport = import_module("nats.aio.transport")
        transport.aiohttp = import_module("aiohttp")  # type: ignore[attr-defined]
