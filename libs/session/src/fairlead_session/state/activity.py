"""What holds for the prompts that the model works on now, and for no others."""

from dataclasses import dataclass, replace
from typing import Any

from fairlead_schema.catalog import ModelRef
from fairlead_schema.prompt import Prompt


@dataclass(frozen=True)
class Activity:
    """The options of the prompts that the model works on.

    The latest prompt that names an option decides it. The system texts of all prompts hold together.
    """

    system: tuple[str, ...] = ()
    agent: str | None = None
    model: ModelRef | None = None
    tools: tuple[str, ...] | None = None
    """The names and patterns of the selected tools; None selects all tools of the agent."""
    output_schema: dict[str, Any] | None = None
    repairs: int = 0
    """How many structured answers were rejected since the last prompt."""
    complaint: str | None = None
    """Why the last one was rejected, until the model was told."""

    def with_prompt(self, prompt: Prompt) -> "Activity":
        """The options after another prompt was promoted. Absent options stay as they are."""
        if not (prompt.has_options or self.repairs):
            return self
        return replace(
            self,
            system=self.system if prompt.system is None else (*self.system, prompt.system),
            agent=prompt.agent or self.agent,
            model=prompt.model or self.model,
            tools=self.tools if prompt.tools is None else prompt.tools,
            output_schema=prompt.output_schema or self.output_schema,
            repairs=0,
        )


NO_OPTIONS = Activity()
