"""`core/references`: the configured references outside the location."""

from collections.abc import Mapping
from typing import Final

from fairlead_schema.context import ObservedSource
from fairlead_service.config.context import ReferenceConfig

KEY: Final = "core/references"

LEAD: Final = "These references lie outside your working directory; read one when it helps:"
CHANGED: Final = "The references have changed. These replace the earlier list:"
REVOKED: Final = "The references you were told of are no longer available."


def observe(references: Mapping[str, ReferenceConfig]) -> ObservedSource | None:
    """The paths with a description, sorted by name; None without any. A text comes by mention."""
    entries = [
        [name, references[name].path, references[name].description]
        for name in sorted(references)
        if references[name].description and references[name].path
    ]
    if not entries:
        return None
    lines = "\n".join(f"- {name} ({path}): {description}" for name, path, description in entries)
    return ObservedSource(
        key=KEY,
        value=entries,
        baseline=f"{LEAD}\n{lines}",
        update=f"{CHANGED}\n{lines}",
        removed=REVOKED,
    )
