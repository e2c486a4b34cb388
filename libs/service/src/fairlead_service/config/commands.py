"""Slash commands: templates that a prompt names by `/name`."""

from typing import Annotated, TypeAlias

from pydantic import Field, StringConstraints

from fairlead_schema.catalog import ModelRef
from fairlead_service.config.section import Section

TEMPLATE_LENGTH_MAX = 256 * 1024

CommandName: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
]


class CommandConfig(Section):
    """A template with `$ARGUMENTS`, `$1` and so on, and who answers its prompt."""

    template: str = Field(min_length=1, max_length=TEMPLATE_LENGTH_MAX)
    description: str | None = None
    agent: str | None = None
    model: str | None = Field(default=None, pattern=r"^[^/]+/.+$")
    variant: str | None = None

    def model_ref(self) -> ModelRef | None:
        """The model that the session takes for the command, if the command names one."""
        if self.model is None:
            return None
        provider_id, model_id = self.model.split("/", 1)
        return ModelRef(provider_id=provider_id, id=model_id, variant=self.variant)
