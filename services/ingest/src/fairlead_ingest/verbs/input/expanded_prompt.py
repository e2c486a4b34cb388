"""Expanded prompts in the log: the commands that they bring along, and how a retry finds them."""

from fairlead_ingest.command_context import CommandContext
from fairlead_schema.events import PromptAdmitted, PromptPromoted, ShellRequested
from fairlead_schema.ids import MessageId
from fairlead_schema.prompt import Prompt
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_service.config.configuration import Config
from fairlead_session.input.fingerprint import fingerprint
from fairlead_session.state.session import Session


def request_shells(
    config: Config,
    session: Session,
    prompt_id: MessageId,
    prompt: Prompt,
    commands: tuple[str, ...],
) -> tuple[ShellRequested, ...]:
    """The requests for the commands of a prompt's templates. Nobody else can know their ids."""
    chosen = prompt.agent or (session.profile.agent if session.profile else None)
    return tuple(
        ShellRequested(
            message_id=(id_ := ids.message_id()),
            call_id=f"call_{id_}",
            command=command,
            agent=config.agent_name(chosen),
            prompt_id=prompt_id,
        )
        for command in commands
    )


async def find_admitted(
    context: CommandContext, at: Address, session: Session, message_id: MessageId
) -> Prompt | None:
    """The prompt as it was admitted. The fold keeps it only while it is pending."""
    pending = (item.prompt for item in session.inbox.pending if item.message_id == message_id)
    prompt = next(pending, None)
    admission = session.inbox.admissions[message_id]
    if prompt is None:
        prompt = await _read_prompt(context, at, admission.admitted_seq)
    if prompt is None or fingerprint(prompt) == admission.fingerprint:
        return prompt
    # Somebody edited the input before its promotion.
    return await _read_prompt(context, at, admission.promoted_seq)


async def _read_prompt(context: CommandContext, at: Address, seq: int | None) -> Prompt | None:
    if seq is None:
        return None
    log = context.eventlog.log
    page = await log.read(at, after=await log.locate(at, seq - 1), reach=await _end(context, at))
    for stored in page.commits:
        for recorded in stored.commit.events:
            if recorded.seq == seq and isinstance(recorded.event, PromptAdmitted | PromptPromoted):
                return recorded.event.prompt
    return None


async def _end(context: CommandContext, at: Address) -> int:
    return (await context.eventlog.log.head(at)).position
