"""Model servers on this machine: a short look at the loopback ports of the local presets."""

import asyncio
import socket
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from fairlead_cli.command_line.module_loader import load_http
from fairlead_cli.first_use.found_provider import FoundProvider, ServedModel, provider_address
from fairlead_service.identity.loopback import is_loopback
from fairlead_service.presets.preset import PRESETS

CONNECT_S: Final = 0.5
PORTS: Final = {"http": 80, "https": 443}


def find_servers(env: Mapping[str, str]) -> tuple[FoundProvider, ...]:
    """The local presets that answer with a list of models, also if the list is empty."""
    local = [preset for preset in PRESETS.values() if preset.is_local]
    offers = [(preset, provider_address(preset, env)) for preset in local]
    found = ((preset, address, list_models(address)) for preset, address in offers)
    return tuple(
        FoundProvider(preset, address, models)
        for preset, address, models in found
        if models is not None
    )


def list_models(base_url: str) -> tuple[ServedModel, ...] | None:
    """The models of a server on this machine. None: nothing answers, or not with models."""
    if not _listens(base_url):
        return None
    # What speaks HTTP is loaded where somebody listens.
    load_http()
    from fairlead_cli.first_use.served_models import ask_models  # noqa: PLC0415

    return asyncio.run(ask_models(base_url))


def _listens(base_url: str) -> bool:
    """Whether a program on this machine takes connections at the address."""
    parts = urlsplit(base_url)
    host, port = parts.hostname or "", parts.port or PORTS.get(parts.scheme, 0)
    if not is_loopback(host):
        return False
    try:
        socket.create_connection((host, port), timeout=CONNECT_S).close()
    except OSError:
        return False
    return True
