"""The body of a run, as the OpenAPI document shows it. The package of the protocol checks the rest."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

ForeignId = Annotated[str, StringConstraints(min_length=1, max_length=512, pattern=r"^[^\x00]*$")]


class RunBody(BaseModel):
    """`RunAgentInput` of AG-UI. A null counts as absent, as its clients send it."""

    model_config = ConfigDict(
        frozen=True, extra="allow", alias_generator=to_camel, populate_by_name=True
    )

    thread_id: ForeignId
    """A thread of the front end, or the id of a session."""
    run_id: ForeignId
    """One run is one prompt: a repeated run is not admitted again."""
    messages: list[dict[str, Any]]
    resume: Annotated[list[dict[str, Any]], Field(max_length=256)] | None = None

    def raw(self) -> dict[str, Any]:
        """The body for the package of the protocol."""
        return self.model_dump(mode="json", by_alias=True)
