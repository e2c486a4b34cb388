"""What an editor may choose for a session: agents as modes, and models as a config option. Pure."""

from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from acp import schema

Json: TypeAlias = dict[str, Any]

MODEL_OPTION: Final = "model"


@dataclass(slots=True)
class SessionOptions:
    """The choices of a location, and what the session uses now."""

    agents: list[Json] = field(default_factory=list)
    models: list[Json] = field(default_factory=list)
    agent: str = ""
    model: str = ""
    commands: list[Json] = field(default_factory=list)

    @property
    def windows(self) -> dict[str, int]:
        """How many tokens each model can read."""
        return {
            _name(model): model["limit"]["context"]
            for model in self.models
            if (model.get("limit") or {}).get("context")
        }

    def modes(self) -> schema.SessionModeState | None:
        """The agents that a person may choose; None if nobody can choose."""
        shown = [
            schema.SessionMode(
                id=agent["id"], name=agent["id"], description=agent.get("description")
            )
            for agent in self.agents
            if agent.get("mode") != "subagent" and not agent.get("hidden")
        ]
        if self.agent not in {mode.id for mode in shown}:
            return None
        return schema.SessionModeState(available_modes=shown, current_mode_id=self.agent)

    def config_options(self) -> list[schema.SessionConfigOptionSelect]:
        """The choice of the model; nothing without models."""
        names = [_name(model) for model in self.models]
        if self.model not in names:
            return []
        options = [
            schema.SessionConfigSelectOption(value=_name(model), name=model.get("name") or name)
            for model, name in zip(self.models, names, strict=True)
        ]
        return [
            schema.SessionConfigOptionSelect(
                id=MODEL_OPTION,
                name="Model",
                category="model",
                type="select",
                current_value=self.model,
                options=options,
            )
        ]

    def available_commands(self) -> schema.AvailableCommandsUpdate | None:
        """The slash commands that a prompt may begin with; None without any."""
        if not self.commands:
            return None
        arguments = schema.AvailableCommandInput(schema.UnstructuredCommandInput(hint="arguments"))
        return schema.AvailableCommandsUpdate(
            session_update="available_commands_update",
            available_commands=[
                schema.AvailableCommand(
                    name=command["name"],
                    description=command.get("description") or command["name"],
                    input=arguments,
                )
                for command in self.commands
            ],
        )


def _name(model: Json) -> str:
    return f"{model['providerID']}/{model['id']}"
