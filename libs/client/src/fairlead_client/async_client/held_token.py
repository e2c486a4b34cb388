"""The token that requests carry: read once, and read again when the server refuses it."""

from fairlead_client.async_client.runtime import Lock, resolve
from fairlead_client.credentials import (
    TokenReader,
    TokenSource,
    check_token,
    source_name,
    token_reader,
)
from fairlead_client.errors import ClientError, TokenUnavailable


class AsyncHeldToken:
    """One token for all requests. Those that are refused together read it once."""

    def __init__(self, source: TokenSource | None) -> None:
        self._read, self._name = token_reader(source), source_name(source)
        self._token: str | None = None
        self._reading = Lock()

    async def get(self) -> str | None:
        """The token; None if the caller has none. Raises TokenUnavailable."""
        if self._token is None and self._read is not None:
            async with self._reading:
                if self._token is None:
                    self._token = await read_token(self._read, self._name)
        return self._token

    async def renew(self, refused: str | None) -> bool:
        """Read the token again after a refusal. False: there is no other one."""
        if self._read is None:
            return False
        async with self._reading:
            # Otherwise another request was refused before, and has read it.
            if self._token is None or self._token == refused:
                self._token = None
                self._token = await read_token(self._read, self._name)
        return self._token != refused


async def read_token(read: TokenReader, source: str) -> str:
    """What the source gives now. Raises TokenUnavailable, also for what the function of a caller raises."""
    try:
        token = await resolve(read())
    except ClientError:
        raise
    except Exception as error:
        raise TokenUnavailable(source, f"{type(error).__name__}: {error}") from error
    return check_token(token, source)
