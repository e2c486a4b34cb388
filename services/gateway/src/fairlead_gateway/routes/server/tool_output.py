"""`GET /api/tool-output/{outputID}`: the complete output behind a bounded one, streamed."""

import re
from collections.abc import AsyncIterator
from typing import Final

from starlette.responses import Response, StreamingResponse

from fairlead_eventlog.ports import OutputStore, StoredOutput
from fairlead_gateway.http.incoming import Nothing, output_id_of
from fairlead_gateway.http.operation import Call, Operation
from fairlead_gateway.http.sse import closed
from fairlead_schema.errors import OutputNotFound, ServiceUnavailable
from fairlead_schema.ids import OutputId, TenantId

_RANGE: Final = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
PARTIAL: Final = 206
UNSATISFIABLE: Final = 416


async def _read(call: Call[Nothing, Nothing]) -> Response:
    output_id, outputs = output_id_of(call.request), call.runtime.medium().outputs
    kept = await outputs.stat(call.tenant, output_id)
    if kept is None:
        raise OutputNotFound(output_id)
    wanted = span(call.request.headers.get("range"), kept.bytes)
    headers = _headers(output_id, kept)
    if wanted is None:
        headers["content-range"] = f"bytes */{kept.bytes}"
        return Response(status_code=UNSATISFIABLE, headers=headers)
    partial = len(wanted) != kept.bytes
    if partial:
        headers["content-range"] = f"bytes {wanted.start}-{wanted.stop - 1}/{kept.bytes}"
    headers["content-length"] = str(len(wanted))
    return StreamingResponse(
        _pieces(outputs, call.tenant, output_id, wanted),
        status_code=PARTIAL if partial else 200,
        headers=headers,
    )


def span(asked: str | None, size: int) -> range | None:
    """The bytes that a Range header asks for; None if there are none of them.

    What is no single range of bytes is answered with the whole, as the protocol allows.
    """
    found = _RANGE.fullmatch(asked or "")
    if found is None or not any(found.groups()):
        return range(size)
    first, last = found.groups()
    if not first:
        wanted = range(max(0, size - int(last)), size)
    else:
        wanted = range(int(first), min(size, int(last) + 1) if last else size)
        if last and int(last) < int(first):
            return range(size)
    return wanted or None


async def _pieces(
    outputs: OutputStore, tenant: TenantId, output_id: OutputId, wanted: range
) -> AsyncIterator[bytes]:
    left = len(wanted)
    if not left:
        return
    async with closed(outputs.get(tenant, output_id, first=wanted.start)) as pieces:
        async for piece in pieces:
            yield piece[:left]
            left -= len(piece)
            if left <= 0:
                return


def _headers(output_id: OutputId, kept: StoredOutput) -> dict[str, str]:
    # A tool's output is anybody's text: no browser shall run it as a page of ours.
    return {
        "content-type": kept.mime,
        "content-disposition": f'attachment; filename="{output_id}"',
        "content-security-policy": "sandbox",
        "x-content-type-options": "nosniff",
        "accept-ranges": "bytes",
        "cache-control": "private, no-store",
    }


READ = Operation(
    id="tool-output.read",
    method="GET",
    path="/api/tool-output/{outputID}",
    summary="The complete output that a bounded one refers to, or a range of its bytes.",
    respond=_read,
    query=Nothing,
    body=Nothing,
    answer=None,
    errors=(OutputNotFound, ServiceUnavailable),
    media="application/octet-stream",
)
