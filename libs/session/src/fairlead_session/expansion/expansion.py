"""The expansion of a prompt: commands first, then mentions. All of it, or a refusal."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from fairlead_schema.commands.input import COMMAND_LENGTH_MAX
from fairlead_schema.commands.location_catalog import CommandInfo
from fairlead_schema.prompt import (
    AgentMention,
    MentionKind,
    Prompt,
    PromptFile,
    PromptSource,
    SourceMention,
    TextSpan,
)
from fairlead_session.expansion.mention_tokens import Token, find_command, find_mentions
from fairlead_session.expansion.template import fill_template, is_in_output_note
from fairlead_session.frozen import replace
from fairlead_session.input.attachment import media_type
from fairlead_session.input.fingerprint import fingerprint

SHELLS_MAX: Final = 16
TASK_GUIDANCE: Final = (
    "The user mentions the agent {name}. Give the work for it to the `task` tool with this agent."
)
DENIED_GUIDANCE: Final = "The user mentions the agent {name}, which you may not use here."


@dataclass(frozen=True, slots=True)
class CommandLoop:
    """A template leads to itself again."""

    chain: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TooLong:
    """The prompt grows beyond what one prompt may hold, or a command beyond what may run."""

    length: int
    limit: int
    what: str = "the template"


@dataclass(frozen=True, slots=True)
class TooManyShells:
    """The templates of a prompt run more commands than one prompt may run."""

    limit: int


ExpansionRefusal: TypeAlias = CommandLoop | TooLong | TooManyShells


@dataclass(frozen=True, slots=True)
class Expanding:
    """A prompt on its way: its text so far, the commands that it went through, what they ask for."""

    prompt: Prompt
    text: str
    chain: tuple[CommandInfo, ...] = ()
    shells: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MentionCatalog:
    """What the mentions of a prompt may name."""

    agents: Mapping[str, bool] = field(default_factory=dict)
    """The sub-agents, and whether the agent of the prompt may use each."""
    references: Mapping[str, str] = field(default_factory=dict)
    """What the model is told about each reference."""
    files: Mapping[str, str] = field(default_factory=dict)
    """The URI of each mentioned file and directory that the location has."""


def begin_expansion(prompt: Prompt) -> Expanding:
    """A prompt before its expansion."""
    return Expanding(prompt, prompt.text)


def apply_command(
    now: Expanding, command: CommandInfo, *, length_max: int
) -> Expanding | ExpansionRefusal:
    """Replace the command at the beginning of the text by its template."""
    names = (*(known.name for known in now.chain), command.name)
    if command.name in names[:-1]:
        return CommandLoop(names)
    token = find_command(now.text)
    assert token is not None, "only a text that begins with a command is expanded"
    arguments = now.text[token.end :].strip()
    filled = fill_template(command.template, arguments, length_max=length_max)
    if isinstance(filled, int):
        return TooLong(filled, length_max)
    shells = (*now.shells, *filled.shells)
    if len(shells) > SHELLS_MAX:
        return TooManyShells(SHELLS_MAX)
    longest = max(map(len, shells), default=0)
    if longest > COMMAND_LENGTH_MAX:
        return TooLong(longest, COMMAND_LENGTH_MAX, "a command of the template")
    return replace(now, text=filled.text, chain=(*now.chain, command), shells=shells)


def open_mentions(now: Expanding) -> tuple[Token, ...]:
    """The mentions of the text that its sender has not resolved already."""
    tokens = find_mentions(now.text)
    if now.chain:
        return tuple(token for token in tokens if not is_in_output_note(now.text, token.start))
    files, agents = now.prompt.files or (), now.prompt.agents or ()
    spans = (*(file.source for file in files), *(agent.source for agent in agents))
    taken = {span.start for span in spans if span is not None}
    return tuple(token for token in tokens if token.start not in taken)


def finish_expansion(now: Expanding, catalog: MentionCatalog) -> Prompt:
    """The prompt with its mentions resolved. A word that names nothing stays a word."""
    files, agents, notes = list[PromptFile](), list[AgentMention](), list[str]()
    told: set[str] = {agent.name for agent in now.prompt.agents or ()}
    notes += [_guide(name, catalog) for name in sorted(told & catalog.agents.keys())]
    resolved: list[Token] = []
    for token in open_mentions(now):
        span = TextSpan(start=token.start, end=token.end, text=now.text[token.start : token.end])
        if token.name in catalog.agents:
            agents.append(AgentMention(name=token.name, source=span))
            note = _guide(token.name, catalog)
        elif token.name in catalog.references:
            note = catalog.references[token.name]
        elif token.name in catalog.files:
            uri, note = catalog.files[token.name], ""
            if all(file.uri != uri for file in (*(now.prompt.files or ()), *files)):
                files.append(_attach(token.name, uri, span))
        else:
            continue
        resolved.append(token)
        if note and note not in notes:
            notes.append(note)
    if not (resolved or notes or now.chain):
        return now.prompt
    return _build(now, catalog, "\n\n".join((now.text, *notes)), files, agents, resolved)


def _build(
    now: Expanding,
    catalog: MentionCatalog,
    text: str,
    files: list[PromptFile],
    agents: list[AgentMention],
    resolved: list[Token],
) -> Prompt:
    prompt = now.prompt
    changes: dict[str, object] = {
        "text": text,
        "files": (*(prompt.files or ()), *files) or None,
        "agents": (*(prompt.agents or ()), *agents) or None,
        "source": PromptSource(
            text=prompt.text,
            fingerprint=fingerprint(prompt),
            mentions=_source_mentions(now, catalog, resolved),
        ),
    }
    for command in reversed(now.chain):
        if command.agent is not None and prompt.agent is None:
            changes["agent"] = command.agent
        if command.model is not None and prompt.model is None:
            changes["model"] = command.model
    return prompt.model_copy(update=changes)


def _source_mentions(
    now: Expanding, catalog: MentionCatalog, resolved: list[Token]
) -> tuple[SourceMention, ...]:
    """Where each name stands in the text as it was typed. Names in a template stand at its command."""
    typed = {token.name: token for token in reversed(find_mentions(now.prompt.text))}
    first = find_command(now.prompt.text) if now.chain else None
    mentions = []
    if first is not None:
        kind: MentionKind = "command" if now.chain[0].skill is None else "skill"
        mentions.append(SourceMention(kind=kind, name=first.name, start=0, end=first.end))
    for token in resolved:
        place = typed.get(token.name, first or token) if now.chain else token
        if token.name in catalog.agents:
            kind = "agent"
        else:
            kind = "reference" if token.name in catalog.references else "file"
        mentions.append(SourceMention(kind=kind, name=token.name, start=place.start, end=place.end))
    return tuple(mentions)


def _guide(name: str, catalog: MentionCatalog) -> str:
    return (TASK_GUIDANCE if catalog.agents[name] else DENIED_GUIDANCE).format(name=name)


def _attach(name: str, uri: str, span: TextSpan) -> PromptFile:
    return PromptFile(uri=uri, mime=media_type(uri, name), name=name, source=span)
