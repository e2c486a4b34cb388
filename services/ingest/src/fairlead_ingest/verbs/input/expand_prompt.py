"""Expands a prompt before its admission. Ingest decides; the tools service reads the location."""

from fairlead_eventlog.errors import LogUnavailable
from fairlead_ingest.command_context import CommandContext
from fairlead_ingest.verbs.profile.pool import serving_pool
from fairlead_schema import subjects
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.commands.location_catalog import CommandInfo, LookUpNames, NamesFound
from fairlead_schema.errors import InvalidRequest, PayloadTooLarge, Refused
from fairlead_schema.prompt import EXPANSION_LEVEL, TEXT_LENGTH_MAX, Prompt
from fairlead_schema.subjects import Address
from fairlead_service.config.configuration import Config
from fairlead_service.config.context import ReferenceConfig
from fairlead_session.expansion.expansion import (
    CommandLoop,
    Expanding,
    ExpansionRefusal,
    MentionCatalog,
    TooLong,
    TooManyShells,
    apply_command,
    begin_expansion,
    finish_expansion,
    open_mentions,
)
from fairlead_session.expansion.mention_tokens import find_command
from fairlead_session.people.permission import Denied, Need, effect, permit
from fairlead_session.state.session import Profile

TASK_ACTION = "task"
SHELL_ACTION = "bash"


def may_expand(context: CommandContext, prompt: Prompt) -> bool:
    """Whether a prompt may name something. Texts without a sign cost nothing.

    While an older release may read the log, texts stay as they are.
    """
    if prompt.synthetic or context.eventlog.status.current.level < EXPANSION_LEVEL:
        return False
    return bool(
        prompt.agents
        or find_command(prompt.text) is not None
        or open_mentions(begin_expansion(prompt))
    )


async def expand_prompt(
    context: CommandContext, at: Address, profile: Profile, prompt: Prompt
) -> tuple[Prompt, tuple[str, ...]]:
    """The expanded prompt, and the commands that its templates run first. Changes nothing.

    Raises InvalidRequest or PayloadTooLarge, and LogUnavailable if nobody reads the location now.
    """
    config = context.settings.config
    now = begin_expansion(prompt)
    while (command := await _find_command(context, at, profile, now)) is not None:
        step = apply_command(now, command, length_max=TEXT_LENGTH_MAX)
        if not isinstance(step, Expanding):
            raise _expansion_error(step)
        now = step
    agent = _agent(config, profile, now)
    _check_shells(config, agent, now)
    catalog = await _catalog(context, at, profile, agent, now)
    return finish_expansion(now, catalog), now.shells


async def look_up(
    context: CommandContext,
    at: Address,
    profile: Profile,
    agent: str,
    *,
    paths: tuple[str, ...] = (),
    skill: str | None = None,
) -> NamesFound:
    """Ask the tools service of the location. Raises LogUnavailable, or the refusal of the service."""
    question = LookUpNames(
        tenant=at.tenant, location=profile.location, agent=agent, paths=paths, skill=skill
    )
    settings = context.settings
    reply = await context.eventlog.requests.request(
        subjects.look_up(serving_pool(context, profile.pool)),
        question.model_dump_json(by_alias=True, exclude_none=True).encode(),
        timeout_s=settings.request_timeout_s,
    )
    answer = CommandAnswer[NamesFound].model_validate_json(reply)
    if answer.error is not None:
        raise Refused.from_wire(answer.error)
    if answer.data is None:
        raise LogUnavailable("the tools service gave no answer")
    return answer.data


async def _find_command(
    context: CommandContext, at: Address, profile: Profile, now: Expanding
) -> CommandInfo | None:
    """The command at the beginning of the text: configured, or a skill with a slash."""
    token = find_command(now.text)
    if token is None:
        return None
    config = context.settings.config
    configured = config.command.get(token.name)
    if configured is not None:
        return CommandInfo(
            name=token.name,
            template=configured.template,
            agent=configured.agent,
            model=configured.model_ref(),
        )
    agent = _agent(config, profile, now)
    skill = (await look_up(context, at, profile, agent, skill=token.name)).skill
    if skill is None or not skill.slash:
        return None
    return CommandInfo(name=skill.name, template=skill.content, skill=True)


def _agent(config: Config, profile: Profile, now: Expanding) -> str:
    """The agent that will answer: that of the prompt, else of its first command, else the session's."""
    chosen = (command.agent for command in now.chain if command.agent is not None)
    return now.prompt.agent or next(chosen, None) or config.agent_name(profile.agent)


async def _catalog(
    context: CommandContext, at: Address, profile: Profile, agent: str, now: Expanding
) -> MentionCatalog:
    config = context.settings.config
    rules = config.rules(agent)
    agents = {
        name: effect(rules, TASK_ACTION, name) != "deny"
        for name, known in config.agents.items()
        if known.mode != "primary" and not known.hidden
    }
    references = {name: _describe(name, known) for name, known in config.reference.items()}
    names = dict.fromkeys(token.name for token in open_mentions(now))
    paths = tuple(name for name in names if name not in agents and name not in references)
    found = await look_up(context, at, profile, agent, paths=paths) if paths else NamesFound()
    files = {path.name: path.uri for path in found.paths}
    return MentionCatalog(agents=agents, references=references, files=files)


def _describe(name: str, reference: ReferenceConfig) -> str:
    if reference.text is not None:
        return f"The reference {name} says:\n{reference.text}"
    why = f" {reference.description}" if reference.description else ""
    return f"The reference {name} is at {reference.path}. Read it for this prompt.{why}"


def _check_shells(config: Config, agent: str, now: Expanding) -> None:
    """Refuse a template that runs what a rule denies. Raises InvalidRequest."""
    for command in now.shells:
        needs = (Need(SHELL_ACTION, (command,)),)
        refusal = permit(config.rules(agent), (), (), needs)
        if isinstance(refusal, Denied):
            name = now.chain[0].name
            text = f"/{name} runs a command that {agent} may not run: {refusal.message}"
            raise InvalidRequest(text, kind="Body", field="prompt.text")


def _expansion_error(refusal: ExpansionRefusal) -> Refused:
    match refusal:
        case CommandLoop(chain=chain):
            path = " leads to ".join(f"/{name}" for name in chain)
            text = f"The command includes itself: {path}"
            return InvalidRequest(text, kind="Body", field="prompt.text")
        case TooLong(length=length, limit=limit, what=what):
            subject = what[0].upper() + what[1:]
            return PayloadTooLarge(f"{subject} has {length} characters; {limit} are allowed")
        case TooManyShells(limit=limit):
            text = f"The templates run more than {limit} commands"
            return InvalidRequest(text, kind="Body", field="prompt.text")
