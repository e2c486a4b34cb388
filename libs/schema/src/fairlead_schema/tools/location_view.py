"""What a runner asks about a location at each boundary: the context sources and the tools, if they changed."""

from fairlead_schema.context import Observation, ObserveContext
from fairlead_schema.model import Model
from fairlead_schema.tools.request import ToolInfo


class ObserveLocation(ObserveContext):
    """Asks for the sources and the tools of a location, except for what the asker knows by its hash.

    A tools service of an earlier release ignores these fields, and answers with all sources alone.
    """

    with_tools: bool = False
    known_sample: str | None = None
    known_tools: str | None = None
    with_directory: bool | None = None
    """True: say whether the location is a directory that exists."""


class LocationView(Model):
    """The sources and the tools of a location now. What the asker knows already is left out.

    An asker of an earlier release names no hash, and reads the observations as its sample.
    """

    observations: tuple[Observation, ...] | None = None
    sample_hash: str | None = None
    tools: tuple[ToolInfo, ...] | None = None
    tools_hash: str | None = None
    is_directory: bool | None = None
