"""Requests that carry whole files: the download of an export, and the upload of one."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Final

import httpx

from fairlead_client.answers.answer_models import data_of
from fairlead_client.async_client.http_connection import CONNECT_S, TIMEOUT_S, AsyncHttpConnection

SILENCE_S: Final = 60.0
PIECE_BYTES: Final = 256 * 1024
# The answer comes when everything is written.
_TIMEOUT: Final = httpx.Timeout(TIMEOUT_S, connect=CONNECT_S, read=None)


async def download_export(
    connection: AsyncHttpConnection,
    path: str,
    write: Callable[[bytes], object],
    *,
    tree: bool = False,
) -> None:
    """Write the pieces of an export. It is complete only with its own last line."""
    params = {"tree": "true"} if tree else {}
    async with connection.open(path, params, media="application/", read_s=SILENCE_S) as response:
        async for piece in response.aiter_bytes():
            write(piece)


async def upload_export(
    connection: AsyncHttpConnection, file: Path, params: dict[str, str]
) -> dict[str, Any]:
    """Send an export, and return the report of its import."""
    answer = await connection.request(
        "POST",
        "/api/session/import",
        is_repeatable=False,
        params=params,
        content=_read_pieces(file),
        headers={"content-type": "application/octet-stream"},
        timeout=_TIMEOUT,
    )
    report: dict[str, Any] = data_of(answer)
    return report


async def _read_pieces(file: Path) -> AsyncIterator[bytes]:
    with file.open("rb") as pieces:
        while piece := pieces.read(PIECE_BYTES):
            yield piece
