"""Stores and purges messages of a stream, with failures as errors of the ports."""

from fairlead_eventlog.errors import LogUnavailable, NoResponders
from fairlead_eventlog.jetstream.link import NatsLink, NoAnswer, ServerRefusal, stream_error


async def store_message(
    link: NatsLink, subject: str, payload: bytes, headers: dict[str, str] | None = None
) -> int:
    """Store one message; the answer is its sequence. Every failure is a LogUnavailable."""
    try:
        return await link.store(subject, payload, headers=headers)
    except ServerRefusal as refusal:
        raise LogUnavailable(str(refusal)) from refusal
    except (NoAnswer, NoResponders) as error:
        raise LogUnavailable(f"{subject} was not acknowledged") from error


async def purge_subject(
    link: NatsLink, stream: str, subject: str, *, before: int | None = None
) -> None:
    """Remove a subject's messages from a stream: those before a sequence, or all of them."""
    body = {"filter": subject} if before is None else {"filter": subject, "seq": before}
    try:
        await link.api(f"STREAM.PURGE.{stream}", body)
    except ServerRefusal as refusal:
        raise stream_error(refusal, stream) from refusal
