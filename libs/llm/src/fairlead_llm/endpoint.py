"""One deployment of a model provider: its protocol, its address, its key and our timeouts."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ProviderEndpoint:
    """The repr leaves secrets out. `first_byte_s` runs from the dispatch to the first body byte."""

    protocol: str
    base_url: str
    api_key: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    connect_s: float = 10.0
    first_byte_s: float = 300.0
    idle_s: float = 300.0
