"""What a stack on this machine consists of."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fairlead_cli.embedded.fork_server.client import ForkClient
from fairlead_cli.first_use.found_provider import FoundProvider


@dataclass(frozen=True, slots=True)
class StackPlan:
    """What to run, and where."""

    state: Path
    scale: Mapping[str, int] = field(default_factory=dict)
    sim: bool = False
    relaxed: bool = False
    # True: all services in one process.
    solo: bool = False
    nats_nodes: int = 1
    config: Path | None = None
    # The provider to use where no file is given.
    found: FoundProvider | None = None
    # None: the port of the configuration. 0: any free port.
    port: int | None = None
    # True: everybody on this machine may call, without a key.
    open: bool = False
    # Variables for the gateway alone, such as its limits.
    gateway: Mapping[str, str] = field(default_factory=dict)
    cwd: Path = field(default_factory=Path.cwd)
    # None: a fork server of its own.
    forks: ForkClient | None = None
