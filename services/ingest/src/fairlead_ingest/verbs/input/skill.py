"""`session.skill`: put the instructions of a skill into a session, durably, once."""

from functools import partial

from fairlead_ingest.command_context import CommandContext, ContextDep
from fairlead_ingest.verbs.input.expand_prompt import look_up
from fairlead_ingest.verbs.input.prompt import admit_typed
from fairlead_schema.commands.input import LoadSkill
from fairlead_schema.errors import InvalidRequest, ServiceUnavailable
from fairlead_schema.prompt import (
    EXPANSION_LEVEL,
    Prompt,
    PromptSource,
    Receipt,
    SourceMention,
)
from fairlead_schema.subjects import Address
from fairlead_service.rpc.server import TenantParam
from fairlead_session.input.fingerprint import fingerprint
from fairlead_session.state.session import Session


async def skill(context: ContextDep, tenant: TenantParam, command: LoadSkill) -> Receipt:
    """Admit the text of a skill as synthetic input. Raises InvalidRequest for a skill that is missing.

    A skill that the session's agent may not load looks like a missing one.
    """
    at = Address(tenant, command.session_id)
    if context.eventlog.status.current.level < EXPANSION_LEVEL:
        text = (
            "Skills can be put in when no older release runs: run `fairlead provision --finalise`"
        )
        raise ServiceUnavailable(text, service="session.skill")
    typed = Prompt(text=f"/{command.skill}", synthetic=True)
    expand = partial(_load_skill, context, at, command.skill, typed)
    return await admit_typed(context, at, command, typed, expand)


async def _load_skill(
    context: CommandContext, at: Address, name: str, typed: Prompt, session: Session
) -> tuple[Prompt, tuple[str, ...]]:
    assert session.profile is not None, "only an existing session is looked at"
    agent = context.settings.config.agent_name(session.profile.agent)
    found = (await look_up(context, at, session.profile, agent, skill=name)).skill
    if found is None:
        raise InvalidRequest(f"Unable to load skill {name}", kind="Body", field="skill")
    place = f"\n\nThis skill is at {found.location}" if found.location else ""
    mention = SourceMention(kind="skill", name=name, start=0, end=len(typed.text))
    source = PromptSource(text=typed.text, fingerprint=fingerprint(typed), mentions=(mention,))
    text = f"# Skill: {name}\n\n{found.content}{place}"
    return Prompt(text=text, synthetic=True, source=source), ()
