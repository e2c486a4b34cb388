"""Message ids, each bound to one session."""

from fairlead_eventlog.errors import LogUnavailable, NoResponders
from fairlead_eventlog.jetstream.link import (
    NatsLink,
    NoAnswer,
    ServerRefusal,
    stream_error,
)
from fairlead_eventlog.streams import MESSAGES
from fairlead_schema import subjects
from fairlead_schema.ids import MessageId, SessionId, TenantId


class JetStreamMessageIds:
    """One message per message id. The stream refuses a second binding."""

    def __init__(self, link: NatsLink) -> None:
        self._link = link

    async def bind(
        self, tenant: TenantId, message_id: MessageId, session_id: SessionId
    ) -> SessionId:
        subject = subjects.message(tenant, message_id)
        try:
            await self._link.store(subject, session_id.encode())
        except ServerRefusal as refusal:
            if not refusal.is_second_message:
                raise stream_error(refusal, MESSAGES.name) from refusal
            return await self.find(tenant, message_id) or session_id
        except (NoAnswer, NoResponders) as error:
            raise LogUnavailable("the message id was not bound") from error
        return session_id

    async def find(self, tenant: TenantId, message_id: MessageId) -> SessionId | None:
        subject = subjects.message(tenant, message_id)
        message = await self._link.last_message(MESSAGES.name, subject)
        return None if message is None else message.payload.decode()
