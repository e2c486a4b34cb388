"""Messages that nobody can ever handle, stored with their reasons."""

from typing import Final

from fairlead_eventlog.condition.metrics import DEAD_LETTERS
from fairlead_eventlog.jetstream.link import NatsLink
from fairlead_eventlog.jetstream.messages import store_message
from fairlead_schema import subjects
from fairlead_schema.dead_letter import DeadLetter

LETTER_BYTES_MAX: Final = 64 * 1024


class JetStreamDeadLetters:
    """Dead letters as messages of one stream."""

    def __init__(self, link: NatsLink) -> None:
        self._link = link

    async def add(self, source: str, subject: str, payload: bytes, reason: str) -> None:
        # A payload is cut first: as escaped text it may be several times as long.
        text = payload[:LETTER_BYTES_MAX].decode(errors="backslashreplace")
        letter = DeadLetter(subject=subject, reason=reason[:LETTER_BYTES_MAX], payload=text)
        await store_message(
            self._link, subjects.dead_letter(source), letter.model_dump_json().encode()
        )
        DEAD_LETTERS.labels(source).inc()
