"""What confines the commands of a worker, and how people are told."""

import logging
from dataclasses import dataclass
from typing import Final

from fairlead_service.config.sections import ToolsConfig
from fairlead_tools.shell.sandbox import Sandbox, SandboxUnavailable, prepare_sandbox

log = logging.getLogger(__name__)

ADVICE: Final = "install bubblewrap, or run the tools service where nothing else is"


@dataclass(frozen=True, slots=True)
class Confinement:
    """The sandbox of a worker, or why there is none."""

    sandbox: Sandbox | None
    missing: str | None = None
    """Why there is no sandbox."""

    @property
    def line(self) -> str:
        """One line for people."""
        if self.sandbox is None:
            return f"no sandbox: permissions are consent, not confinement ({self.missing})"
        network = "with network" if self.sandbox.network else "no network"
        return f"commands run in bubblewrap: only the location is writable, {network}"


def find_confinement(settings: ToolsConfig) -> Confinement:
    """What confines commands here. Raises SandboxUnavailable if a sandbox is required."""
    if settings.sandbox == "none":
        return Confinement(None, 'tools.sandbox is "none"')
    try:
        sandbox = prepare_sandbox(network=settings.sandbox_network, read=settings.sandbox_read)
    except SandboxUnavailable as error:
        if settings.sandbox == "bwrap":
            raise
        return Confinement(None, error.reason)
    return Confinement(sandbox)


def confine(settings: ToolsConfig) -> Sandbox | None:
    """The sandbox of a worker. A worker without a sandbox says so in its log."""
    confinement = find_confinement(settings)
    if confinement.sandbox is None:
        log.warning(
            "permissions are consent, not confinement: commands run without a sandbox, with all "
            "rights of this user; %s",
            ADVICE,
            extra={"reason": confinement.missing},
        )
    else:
        log.info("commands run in a sandbox", extra={"program": confinement.sandbox.program})
    return confinement.sandbox
