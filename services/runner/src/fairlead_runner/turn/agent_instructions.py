"""Chooses the base instructions of the next turn: a file, or those for the family of the model."""

from pathlib import Path
from typing import Final

from fairlead_service.config.configuration import Config
from fairlead_session.instructions.model_family import model_family
from fairlead_session.instructions.sources import (
    AgentInstructions,
    BaseInstructions,
    InstructionText,
    UnreadableInstructions,
)
from fairlead_session.state.session import Session

FILE_BYTES_MAX: Final = 64 * 1024


def agent_instructions(config: Config, session: Session) -> AgentInstructions | None:
    """The instructions of the session's agent.

    None for an agent with a system text of its own, and for one that is not configured (F-48).
    """
    chosen = session.profile.agent if session.profile else None
    name = config.agent_name(chosen)
    agent = config.agents.get(name)
    if agent is None or agent.system:
        return None
    file = agent.instructions_file or config.runner.instructions_file
    base = _by_model(config, session) if file is None else _read(file)
    return AgentInstructions(name, agent.description, base)


def _by_model(config: Config, session: Session) -> BaseInstructions:
    profile = session.profile
    ref = config.model_of(profile.agent, profile.model) if profile else None
    model = None if ref is None else config.model(ref)
    if ref is None or model is None:
        return "other"
    protocol = config.provider[ref.provider_id].protocol
    return model_family(model.id or ref.id, configured=model.family, protocol=protocol)


def _read(path: str) -> BaseInstructions:
    try:
        with Path(path).open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
        text = content.decode().strip()
    except OSError as error:
        return UnreadableInstructions(f"{path}: {error.strerror}")
    except UnicodeDecodeError:
        return UnreadableInstructions(f"{path} is not UTF-8 text")
    if len(content) > FILE_BYTES_MAX or not text:
        reason = "is empty" if not text else f"has more than {FILE_BYTES_MAX} bytes"
        return UnreadableInstructions(f"{path} {reason}")
    return InstructionText(text)
