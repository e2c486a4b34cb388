"""The names of the three roles in Postgres."""

from typing import Final

MIGRATOR: Final = "fairlead_migrator"
PROJECTOR: Final = "fairlead_projector"
GATEWAY: Final = "fairlead_gateway"
