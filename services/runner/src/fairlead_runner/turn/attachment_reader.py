"""Asks the tools service for the content that attachments name, before a prompt becomes history."""

from dataclasses import replace
from typing import Final, NamedTuple

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogError
from fairlead_schema import subjects
from fairlead_schema.attachments.request import TakeAttachments, TakenAttachments
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.ids import MessageId
from fairlead_schema.location import LocationRef
from fairlead_schema.prompt import Prompt
from fairlead_schema.record import LEVEL_OF_ATTACHMENTS
from fairlead_schema.subjects import Address
from fairlead_session.media.taken_content import needs_content, with_contents
from fairlead_session.relocation.pools import silent_pool
from fairlead_session.state.inbox import PendingInput
from fairlead_session.state.session import Session

TIMEOUT_S: Final = 40.0
"""The tools service bounds each file itself."""
_ANSWER = CommandAnswer[TakenAttachments]


class AttachmentsUnavailable(Exception):
    """The tools service did not take the attachments. The session rests, and tries again."""


class TakenFor(NamedTuple):
    """For what content was taken. Another agent may not read it, another location has other files."""

    prompt: Prompt
    agent: str
    location: LocationRef
    pool: str


class AttachmentReader:
    """Takes the attachments of one drain. What was taken stays the same until it is in the log."""

    def __init__(self, eventlog: EventLog, *, pool: str) -> None:
        """`pool` is the default pool."""
        self._eventlog = eventlog
        self._pool = pool
        self._taken: dict[MessageId, tuple[TakenFor, Prompt]] = {}

    def has_to_ask(self, inputs: tuple[PendingInput, ...]) -> bool:
        """Whether an attachment of the inputs lies elsewhere."""
        files = (file for item in inputs for file in item.prompt.files or ())
        is_ready = self._eventlog.status.current.level >= LEVEL_OF_ATTACHMENTS
        return is_ready and any(map(needs_content, files))

    async def take(
        self, at: Address, session: Session, agent: str, inputs: tuple[PendingInput, ...]
    ) -> tuple[PendingInput, ...]:
        """The inputs with the content of their attachments. Raises AttachmentsUnavailable."""
        if not self.has_to_ask(inputs):
            return inputs
        assert session.profile is not None, "a session that drains was created"
        taken: list[PendingInput] = []
        for item in inputs:
            if not any(map(needs_content, item.prompt.files or ())):
                taken.append(item)
                continue
            known = self._taken.get(item.message_id)
            pool = session.profile.serving_pool(self._pool)
            wanted = TakenFor(item.prompt, agent, session.profile.location, pool)
            if known is None or known[0] != wanted:
                known = (wanted, await self._ask(at, session, agent, item.prompt))
                self._taken[item.message_id] = known
            taken.append(replace(item, prompt=known[1]))
        return tuple(taken)

    async def _ask(self, at: Address, session: Session, agent: str, prompt: Prompt) -> Prompt:
        profile = session.profile
        assert profile is not None, "a session that drains was created"
        command = TakeAttachments(
            tenant=at.tenant,
            session_id=at.session_id,
            location=profile.location,
            project_id=profile.project_id,
            agent=agent,
            principal=profile.created_by,
            files=tuple(file for file in prompt.files or () if needs_content(file)),
        )
        body = command.model_dump_json(by_alias=True, exclude_none=True).encode()
        pool = profile.serving_pool(self._pool)
        try:
            raw = await self._eventlog.requests.request(
                subjects.attach(pool), body, timeout_s=TIMEOUT_S
            )
            answer = _ANSWER.model_validate_json(raw)
            if answer.data is not None:
                return with_contents(prompt, answer.data.contents)
        except (LogError, ValueError) as error:
            reason = f"attachments cannot be read now: {silent_pool(pool)} ({error})"
            raise AttachmentsUnavailable(reason) from error
        reason = answer.error.message if answer.error else "an empty answer"
        raise AttachmentsUnavailable(f"attachments cannot be read now: {reason}")
