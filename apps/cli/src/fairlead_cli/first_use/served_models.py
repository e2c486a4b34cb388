"""Asks a model server on this machine what it serves."""

import asyncio
from typing import Any, Final

import httpx

from fairlead_cli.first_use.found_provider import ServedModel

PROBE_S: Final = 1.0
ANSWER_BYTES_MAX: Final = 1024 * 1024
MODELS_MAX: Final = 200


async def ask_models(base_url: str) -> tuple[ServedModel, ...] | None:
    """The models of a server. None: it does not answer, or not with models."""
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
