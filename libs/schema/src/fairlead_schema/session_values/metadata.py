"""What callers note about a session: a bounded object of strings and numbers."""

from typing import Annotated, Final, TypeAlias

from pydantic import Field, StrictFloat, StrictInt, StringConstraints

METADATA_KEYS_MAX: Final = 50

MetadataKey: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=64)]
MetadataValue: TypeAlias = (
    Annotated[str, StringConstraints(max_length=512)]
    | Annotated[StrictInt, Field(gt=-(2**53), lt=2**53)]
    | Annotated[StrictFloat, Field(gt=-(2**53), lt=2**53)]
)
"""Clients read numbers as JavaScript does."""
