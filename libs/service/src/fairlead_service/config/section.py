"""The base class of every part of the configuration."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A frozen part of the configuration; an unknown key is a mistake."""

    model_config = ConfigDict(frozen=True, extra="forbid")
