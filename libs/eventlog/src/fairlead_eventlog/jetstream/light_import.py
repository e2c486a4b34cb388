"""Imports a module without a package that it can do without, to save memory and time at the start."""

import sys
from collections.abc import Iterable
from importlib import import_module


def import_without(package: str, module: str) -> None:
    """Import a module as if a package were not installed, unless somebody has imported that already."""
    if package in sys.modules or module in sys.modules:
        return
    # A None refuses the import.
    sys.modules[package] = None  # type: ignore[assignment]
    try:
        import_module(module)
    finally:
        del sys.modules[package]


def allow_web_sockets(servers: Iterable[str]) -> None:
    """Give nats-py what it needs for web sockets, if an address asks for them."""
    if any(server.startswith(("ws://", "wss://")) for server in servers):
        transport = import_module("nats.aio.transport")
        transport.aiohttp = import_module("aiohttp")  # type: ignore[attr-defined]
