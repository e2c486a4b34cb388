"""Requests to a gateway: with the caller's token, and again while the server is away."""

import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

import httpx

from fairlead_client.answers.http_answers import away, json_of, not_fairlead, refusal_of
from fairlead_client.async_client.held_token import AsyncHeldToken
from fairlead_client.async_client.repetition import repeat
from fairlead_client.async_client.runtime import AsyncUnfinishedWork, break_off
from fairlead_client.credentials import TokenSource
from fairlead_client.deadline import UNLIMITED, Deadline
from fairlead_client.errors import ClientClosed
from fairlead_client.local_stack import check_address
from fairlead_client.tls_trust import trust_of
from fairlead_schema.errors import InvalidRequest, Unauthorized

TIMEOUT_S: Final = 30.0
CONNECT_S: Final = 5.0
LIMITS: Final = httpx.Limits(max_connections=None, max_keepalive_connections=20)
"""Each stream keeps a connection. The server says how many a principal may have."""


class AsyncHttpConnection:
    """Sends requests, and opens bodies that are read piece by piece."""

    def __init__(
        self,
        url: str,
        token: TokenSource | None = None,
        *,
        patience_s: float | None,
        tls: ssl.SSLContext | None = None,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        """`patience_s` is how long a request is repeated; None means for ever.

        Raises AddressInvalid, ServerUntrusted.
        """
        self.url = check_address(url)
        self.patience_s = patience_s
        self.failure: Exception | None = None
        """Why the stream that is followed is interrupted now; None while it is open."""
        self.was_open = False
        """Whether a stream that is followed has brought anything yet."""
        self._token = AsyncHeldToken(token)
        self._refused: str | None = None
        """The token of the request that was refused last."""
        self._is_closed = False
        self._streams = set[httpx.Response]()
        self._work = AsyncUnfinishedWork()
        # As everywhere in Fairlead: no variable of the environment names a proxy.
        self._http = http or httpx.AsyncClient(
            timeout=httpx.Timeout(TIMEOUT_S, connect=CONNECT_S),
            limits=LIMITS,
            trust_env=False,
            verify=trust_of(url) if tls is None else tls,
        )

    async def aclose(self) -> None:
        """Close the connections. Whoever reads a stream meanwhile gets ClientClosed."""
        self._is_closed = True
        for response in tuple(self._streams):
            break_off(response)
        await self._work.aclose()
        await self._http.aclose()

    async def request(
        self,
        method: str,
        path: str,
        *,
        is_repeatable: bool,
        deadline: Deadline = UNLIMITED,
        verb: str = "",
        **options: Any,  # noqa: ANN401 - of httpx
    ) -> Any:  # noqa: ANN401 - any JSON
        """The JSON of a success, None for an empty one. Raises Refused and ClientError.

        A request that may be repeated is repeated while the server is away, within the patience.
        With a deadline it raises NotInTime.
        """
        response = await repeat(
            lambda: self._send(method, path, options, deadline),
            is_repeatable=is_repeatable,
            patience_s=self.patience_s,
            deadline=deadline,
            renew=self.renew_token,
            verb=verb,
        )
        return None if response is None else json_of(response)

    @asynccontextmanager
    async def open(
        self, path: str, params: dict[str, str], *, media: str, read_s: float
    ) -> AsyncGenerator[httpx.Response, None]:
        """A body to read piece by piece, opened once. Raises Refused and ClientError."""
        self._check_open()
        timeout = httpx.Timeout(TIMEOUT_S, connect=CONNECT_S, read=read_s)
        token = await self._token.get()
        headers = {"accept": media, **_authorization(token)}
        request = self._http.build_request(
            "GET", self.url + path, params=params, headers=headers, timeout=timeout
        )
        try:
            response = await self._work.finish(
                self._http.send(request, stream=True), httpx.Response.aclose
            )
            self._streams.add(response)
            try:
                if not response.is_success:
                    await self._work.finish(response.aread())
                    raise refusal_of(response)
                if not response.headers.get("content-type", "").startswith(media):
                    await self._work.finish(response.aread())
                    raise not_fairlead(response)
                yield response
            finally:
                self._streams.discard(response)
                await self._work.finish(_close(response))
        except httpx.RequestError as error:
            raise away(self.url, error) from error
        except Unauthorized:
            self._refused = token
            raise

    async def pieces_of(self, response: httpx.Response) -> AsyncGenerator[bytes, None]:
        """The body of an open response, as it comes."""
        pieces = response.aiter_bytes()
        while (piece := await self._work.finish(anext(pieces, None))) is not None:
            yield piece

    async def renew_token(self) -> bool:
        """Read the token again after a refusal. False: there is no other one."""
        return await self._token.renew(self._refused)

    def _check_open(self) -> None:
        if self._is_closed:
            raise ClientClosed

    async def _send(
        self, method: str, path: str, options: dict[str, Any], deadline: Deadline
    ) -> httpx.Response:
        self._check_open()
        token = await self._token.get()
        headers = {**options.get("headers", {}), **_authorization(token)}
        options = {**options, "headers": headers}
        if deadline.is_set:
            connect_s = deadline.left_s(CONNECT_S)
            options["timeout"] = httpx.Timeout(deadline.request_s(TIMEOUT_S), connect=connect_s)
        try:
            response = await self._work.finish(
                self._http.request(method, self.url + path, **options)
            )
        except httpx.RequestError as error:
            raise away(self.url, error) from error
        except UnicodeEncodeError as error:
            raise InvalidRequest(
                f"The address holds half a character: {error}", kind="Query"
            ) from error
        if response.is_success:
            return response
        refusal = refusal_of(response)
        if isinstance(refusal, Unauthorized):
            self._refused = token
        raise refusal


def _authorization(token: str | None) -> dict[str, str]:
    return {} if token is None else {"authorization": f"Bearer {token}"}


async def _close(response: httpx.Response) -> bool:
    await response.aclose()
    return True
