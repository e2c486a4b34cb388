"""Models and agents as clients see them, and token counts."""

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from fairlead_schema.model import Model
from fairlead_schema.permission import PermissionRule

Name = Annotated[str, StringConstraints(min_length=1, max_length=256)]


class ModelRef(Model):
    """A reference to a provider's model. An absent variant means the model's default."""

    id: Name
    provider_id: Name
    variant: str | None = None

    def same_model(self, other: "ModelRef") -> bool:
        """Whether both references name the same model and variant."""
        return (self.provider_id, self.id, self.variant or "default") == (
            other.provider_id,
            other.id,
            other.variant or "default",
        )


class CacheTokens(Model):
    """Prompt tokens that a provider read from its cache, and wrote into it."""

    read: int = 0
    write: int = 0


class Tokens(Model):
    """Token counts of one turn or one session. No token is counted twice."""

    input: int = 0
    output: int = 0
    reasoning: int = 0
    cache: CacheTokens = CacheTokens()

    def plus(self, other: "Tokens") -> "Tokens":
        """The sum of both counts."""
        return Tokens(
            input=self.input + other.input,
            output=self.output + other.output,
            reasoning=self.reasoning + other.reasoning,
            cache=CacheTokens(
                read=self.cache.read + other.cache.read, write=self.cache.write + other.cache.write
            ),
        )


class RequestOverlay(Model):
    """Headers and body fields that an agent adds to the provider request."""

    headers: dict[str, str] = Field(default_factory=dict)
    body: dict[str, Any] = Field(default_factory=dict)


class AgentInfo(Model):
    """An agent: system text, permissions, step limit and model."""

    id: str
    model: ModelRef | None = None
    request: RequestOverlay = RequestOverlay()
    system: str | None = None
    description: str | None = None
    mode: Literal["subagent", "primary", "all"] = "primary"
    hidden: bool = False
    steps: int | None = None
    permissions: tuple[PermissionRule, ...] = ()
