"""Questions for open blocks over core NATS."""

from contextlib import suppress

from pydantic import ValidationError

from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.jetstream.link import NatsLink, NoAnswer
from fairlead_eventlog.jetstream.thin.frames import InboundMessage
from fairlead_eventlog.replicas.open_texts import FindOpenTexts
from fairlead_schema import subjects
from fairlead_schema.delta import AskOpenTexts, OpenText, OpenTexts
from fairlead_schema.subjects import Address


class NatsOpenTexts:
    """One subscription for each process that answers."""

    def __init__(self, link: NatsLink) -> None:
        self._link = link

    async def start_answering(self, instance: str, find: FindOpenTexts) -> None:
        def encode(msg: InboundMessage) -> bytes:
            try:
                question = AskOpenTexts.model_validate_json(msg.data)
            except ValidationError:
                return b""
            texts = find(Address(question.tenant, question.session_id))
            payload = OpenTexts(texts=texts).model_dump_json(by_alias=True, exclude_none=True)
            # An answer that is too large for a message is none: the end of the block has the text.
            encoded = payload.encode()
            return encoded if len(encoded) <= self._link.payload_bytes_max else b""

        def receive(msg: InboundMessage) -> bool:
            return not msg.reply or self._link.client.try_send(msg.reply, encode(msg))

        async def receive_later(msg: InboundMessage) -> None:
            with suppress(LogUnavailable):
                await self._link.send(msg.reply, encode(msg))

        await self._link.client.subscribe_directly(
            subjects.open_texts(instance), receive, take_later=receive_later
        )

    async def ask(self, instance: str, at: Address, *, timeout_s: float) -> tuple[OpenText, ...]:
        question = AskOpenTexts(tenant=at.tenant, session_id=at.session_id)
        body = question.model_dump_json(by_alias=True).encode()
        subject = subjects.open_texts(instance)
        try:
            answer = await self._link.request(subject, body, timeout_s=timeout_s)
            return OpenTexts.model_validate_json(answer.data).texts
        except (NoAnswer, ValidationError) as error:
            raise LogUnavailable(f"{instance} gave no answer") from error
