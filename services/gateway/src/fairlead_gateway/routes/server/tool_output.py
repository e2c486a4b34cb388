"""`GET /api/tool-output/{outputID}`: the complete output behind a bounded one, streamed."""

import re
from collections.abc import AsyncIterator
from typing import Final

from starlette.responses import Response, StreamingResponse

from fairlead_eventlog.register_ports import OutputStore, StoredOutput
from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput, output_id_of
from fairlead_gateway.http.sse import auto_close
from fairlead_schema.errors import OutputNotFound, ServiceUnavailable
from fairlead_schema.ids import OutputId, TenantId

_RANGE: Final = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
PARTIAL: Final = 206
UNSATISFIABLE: Final = 416


async def _read_output(request: ApiRequest[EmptyInput, EmptyInput]) -> Response:
    output_id, outputs = output_id_of(request.http), request.runtime.nats().outputs
    answer = await stream_object(request, outputs, output_id, shown_name=output_id)
    if answer is None:
        raise OutputNotFound(output_id)
    return answer


async def stream_object(
    request: ApiRequest[EmptyInput, EmptyInput],
    outputs: OutputStore,
    output_id: OutputId,
    *,
    shown_name: str,
) -> Response | None:
    """A stored object, or the range that the request asks for; None if it is not stored."""
    output = await outputs.stat(request.tenant, output_id)
    if output is None:
        return None
    wanted = requested_range(request.http.headers.get("range"), output.bytes)
    headers = _headers(shown_name, output)
    if wanted is None:
        headers["content-range"] = f"bytes */{output.bytes}"
        return Response(status_code=UNSATISFIABLE, headers=headers)
    partial = len(wanted) != output.bytes
    if partial:
        headers["content-range"] = f"bytes {wanted.start}-{wanted.stop - 1}/{output.bytes}"
    headers["content-length"] = str(len(wanted))
    pieces = _read_range(outputs, request.tenant, output_id, wanted)
    first = await anext(pieces, b"")
    if wanted and not first:
        # A purge or its age removed the output after the look at it.
        return None
    return StreamingResponse(
        _continue_with(first, pieces),
        status_code=PARTIAL if partial else 200,
        headers=headers,
    )


def requested_range(header: str | None, size: int) -> range | None:
    """The bytes that a Range header asks for; None if the output has none of them.

    Any other header than a single range of bytes gets the whole output, as HTTP allows.
    """
    match = _RANGE.fullmatch(header or "")
    if match is None or not any(match.groups()):
        return range(size)
    first, last = match.groups()
    if not first:
        wanted = range(max(0, size - int(last)), size)
    else:
        wanted = range(int(first), min(size, int(last) + 1) if last else size)
        if last and int(last) < int(first):
            return range(size)
    return wanted or None


async def _continue_with(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    async with auto_close(rest):
        yield first
        async for piece in rest:
            yield piece


async def _read_range(
    outputs: OutputStore, tenant: TenantId, output_id: OutputId, wanted: range
) -> AsyncIterator[bytes]:
    left = len(wanted)
    if not left:
        return
    async with auto_close(outputs.get(tenant, output_id, first=wanted.start)) as pieces:
        async for piece in pieces:
            yield piece[:left]
            left -= len(piece)
            if left <= 0:
                return


def _headers(shown_name: str, output: StoredOutput) -> dict[str, str]:
    # Tool output is untrusted text. A browser must not run it as a page of this server.
    return {
        "content-type": output.mime,
        "content-disposition": f'attachment; filename="{shown_name}"',
        "content-security-policy": "sandbox",
        "x-content-type-options": "nosniff",
        "accept-ranges": "bytes",
        "cache-control": "private, no-store",
    }


READ = Operation(
    id="tool-output.read",
    method="GET",
    path="/api/tool-output/{outputID}",
    scope="session:read",
    summary="The complete output that a bounded one refers to, or a range of its bytes.",
    respond=_read_output,
    answer=None,
    errors=(OutputNotFound, ServiceUnavailable),
    media="application/octet-stream",
)
