"""The structured output of a prompt: what a step gave as its answer, and whether it counts."""

from typing import Any, Literal

from fairlead_schema.model import Model

OUTPUT_INVALID = "output-invalid"
"""The code of an answer that did not fit its schema, also after the last repair."""


class StepOutput(Model):
    """The judgement of one step's answer. The model repairs a rejected one; a failed one is the end."""

    status: Literal["accepted", "rejected", "failed"]
    value: dict[str, Any] | None = None
    error: str | None = None
    repairs: int = 0
    """How many answers to the prompt were rejected before this one."""
