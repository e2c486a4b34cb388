"""The names of the services of a stack."""

from typing import Final

SCALABLE: Final = ("ingest", "projector", "tools", "runner", "hooks")
# One gateway holds the HTTP port.
SERVICES: Final = (*SCALABLE, "gateway")
SOLO: Final = "solo"
"""The one process of a stack that runs all services together."""
