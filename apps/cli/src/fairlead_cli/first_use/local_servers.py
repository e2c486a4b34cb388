"""Model servers on this machine: a short look at the loopback ports of the local presets."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import httpx

from fairlead_cli.first_use.found_provider import FoundProvider, ServedModel, provider_address
from fairlead_service.identity.loopback import is_loopback
from fairlead_service.presets.preset import PRESETS

PROBE_S: Final = 1.0
ANSWER_BYTES_MAX: Final = 1024 * 1024
MODELS_MAX: Final = 200


def find_servers(env: Mapping[str, str]) -> tuple[FoundProvider, ...]:
    """The local presets that answer with a list of models, also if the list is empty."""
    return asyncio.run(_find(env))


def list_models(base_url: str) -> tuple[ServedModel, ...] | None:
    """The models of a server on this machine. None: nothing answers, or not with models."""
    return asyncio.run(_list(base_url))


async def _find(env: Mapping[str, str]) -> tuple[FoundProvider, ...]:
    local = [preset for preset in PRESETS.values() if preset.is_local]
    addresses = [provider_address(preset, env) for preset in local]
    lists = await asyncio.gather(*(_list(address) for address in addresses))
    return tuple(
        FoundProvider(preset, address, models)
        for preset, address, models in zip(local, addresses, lists, strict=True)
        if models is not None
    )


async def _list(base_url: str) -> tuple[ServedModel, ...] | None:
    if not is_loopback(urlsplit(base_url).hostname or ""):
        return None
    try:
        async with (
            asyncio.timeout(PROBE_S),
            # No proxy: the question is about this machine.
            httpx.AsyncClient(trust_env=False, timeout=PROBE_S) as client,
            client.stream("GET", f"{base_url}/models") as response,
        ):
            if response.status_code != httpx.codes.OK:
                return None
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > ANSWER_BYTES_MAX:
                    return None
        return _parse(httpx.Response(httpx.codes.OK, content=bytes(body)).json())
    except (TimeoutError, httpx.HTTPError, httpx.InvalidURL, ValueError, RecursionError):
        return None


def _parse(answer: Any) -> tuple[ServedModel, ...] | None:  # noqa: ANN401 - any JSON
    entries = answer.get("data") if isinstance(answer, dict) else None
    if entries is None and isinstance(answer, dict) and answer.get("object") == "list":
        # Ollama without models says null.
        entries = []
    if not isinstance(entries, list):
        return None
    named = (entry for entry in entries if isinstance(entry, dict) and _is_name(entry.get("id")))
    models = [ServedModel(entry["id"], _window(entry.get("max_model_len"))) for entry in named]
    return tuple(models[:MODELS_MAX])


def _is_name(value: object) -> bool:
    return isinstance(value, str) and value.isprintable() and bool(value.strip())


def _window(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0
