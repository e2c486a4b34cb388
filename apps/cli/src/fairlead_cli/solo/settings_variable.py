"""How the launcher hands the settings of all parts to a solo process."""

from typing import Final

SETTINGS_VARIABLE: Final = "FAIRLEAD_SOLO_PARTS"
"""The settings of each part as JSON: `FAIRLEAD_*` variables by the name of the part."""
