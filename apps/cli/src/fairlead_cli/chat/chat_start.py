"""What a new session begins with, and what the server offers."""

from dataclasses import dataclass, field
from typing import Any, Final

from fairlead_cli.chat.view.plain_text import one_line
from fairlead_client import AsyncFairlead

_TAKES_TASKS: Final = frozenset({"subagent", "all"})


@dataclass(frozen=True, slots=True)
class ChatStart:
    """What a person chose for new sessions. None means the server's own choice."""

    agent: str | None = None
    model: str | None = None
    directory: str | None = None


@dataclass(frozen=True, slots=True)
class ServerOffer:
    """Models, agents and commands of the server."""

    models: tuple[dict[str, Any], ...] = ()
    agents: tuple[dict[str, Any], ...] = ()
    commands: tuple[tuple[str, str], ...] = ()
    subagents: tuple[tuple[str, str], ...] = ()
    """The names of agents that take tasks, and what they do."""
    windows: dict[str, int] = field(default_factory=dict)
    """The window of each model."""

    @property
    def command_names(self) -> frozenset[str]:
        return frozenset(name for name, _ in self.commands)


async def read_offer(fairlead: AsyncFairlead) -> ServerOffer:
    """What the server offers now. Raises Refused and ClientError."""
    models, agents = await fairlead.models(), await fairlead.agents()
    commands = await fairlead.commands()
    return ServerOffer(
        models=tuple(models),
        agents=tuple(agent for agent in agents if agent.get("mode") != "subagent"),
        subagents=tuple(
            (agent["id"], one_line(agent.get("description") or ""))
            for agent in agents
            if agent.get("mode") in _TAKES_TASKS and not agent.get("hidden")
        ),
        commands=tuple(
            (command["name"], one_line(command.get("description") or "")) for command in commands
        ),
        windows={name_of(model): model["limit"]["context"] for model in models},
    )


def name_of(model: dict[str, Any]) -> str:
    """A model as `provider/model`."""
    return f"{model['providerID']}/{model['id']}"
