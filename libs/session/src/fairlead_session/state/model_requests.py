"""What earlier requests say about the next one."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fairlead_schema.catalog import ModelRef


@dataclass(frozen=True)
class LastRequest:
    """The last request to a provider: its fingerprint, and what its prefix depends on."""

    fingerprint: str
    agent: str
    model: ModelRef
    epoch: int
    pruned: bool = False
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class PruneCutoff:
    """Requests show tool outputs up to this sequence and above this size as references."""

    through_seq: int
    over_bytes: int
    hosted: bool = False
    """Whether results of hosted tools are among them. Earlier releases left those whole."""


@dataclass(frozen=True)
class RequestState:
    """What earlier requests say about the next one."""

    last: LastRequest | None = None
    prune_cutoff: PruneCutoff | None = None
    token_ratios: Mapping[str, float] = field(default_factory=dict)
    """Reported tokens divided by estimated tokens, by model."""
