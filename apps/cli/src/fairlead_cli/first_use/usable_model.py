"""A model that can be used, as `fairlead models` lists it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UsableModel:
    """One line of the list. `missing` names the variable whose key is not set."""

    model: str
    context: int
    input: float
    output: float
    source: str
    missing: str | None = None
