"""`core/references`: what is worth knowing outside the location, as configured."""

from collections.abc import Mapping
from typing import Final

from fairlead_schema.context import ObservedSource
from fairlead_service.config.context import ReferenceConfig

KEY: Final = "core/references"

LEAD: Final = "These references lie outside your working directory; read one when it helps:"
CHANGED: Final = "The references have changed. These replace the earlier list:"
REVOKED: Final = "The references you were told of are no longer available."


def observe(references: Mapping[str, ReferenceConfig]) -> ObservedSource | None:
    """Those that say when they help, sorted by name; None when no one does."""
    told = [
        [name, references[name].path, references[name].description]
        for name in sorted(references)
        if references[name].description
    ]
    if not told:
        return None
    lines = "\n".join(f"- {name} ({path}): {description}" for name, path, description in told)
    return ObservedSource(
        key=KEY,
        value=told,
        baseline=f"{LEAD}\n{lines}",
        update=f"{CHANGED}\n{lines}",
        removed=REVOKED,
    )
