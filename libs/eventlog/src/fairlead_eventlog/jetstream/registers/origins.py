"""The origins of sessions in a key-value bucket."""

from fairlead_eventlog.errors import LogUnavailable, NoResponders
from fairlead_eventlog.jetstream.link import (
    EXPECTED_LAST,
    WRONG_LAST_SEQUENCE,
    NatsLink,
    NoAnswer,
    ServerRefusal,
    stream_error,
)
from fairlead_eventlog.streams import ORIGINS
from fairlead_schema.subjects import Address


class JetStreamOrigins:
    """One message per session that has an origin."""

    def __init__(self, link: NatsLink) -> None:
        self._link = link

    async def find(self, at: Address) -> str | None:
        message = await self._link.last_message(ORIGINS.name, _subject(at))
        return None if message is None else message.payload.decode()

    async def claim(self, at: Address, origin: str, *, overwrite: bool = False) -> str:
        headers = None if overwrite else {EXPECTED_LAST: "0"}
        try:
            await self._link.store(_subject(at), origin.encode(), headers=headers)
        except ServerRefusal as refusal:
            if refusal.code not in WRONG_LAST_SEQUENCE:
                raise stream_error(refusal, ORIGINS.name) from refusal
            return await self.find(at) or origin
        except (NoAnswer, NoResponders) as error:
            raise LogUnavailable("the origin of the session was not stored") from error
        return origin


def _subject(at: Address) -> str:
    return f"$KV.fairlead-origin.{at.tenant}.{at.session_id}"
