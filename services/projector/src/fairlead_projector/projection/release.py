"""Names this release by what it can read, so that another release tries again what it could not."""

import json
from functools import cache
from hashlib import sha256
from importlib.metadata import version

from pydantic import TypeAdapter

from fairlead_schema import record
from fairlead_schema.events import SessionEvent
from fairlead_session.fold.snapshot import FOLD_VERSION


def release_name() -> str:
    """The version of the projector, the level of the log's format, and a hash of events and fold."""
    return f"{version('fairlead-projector')}/{record.LEVEL_NEWEST}/{_events_hash()}"


@cache
def _events_hash() -> str:
    schema = TypeAdapter(SessionEvent).json_schema()
    return sha256(json.dumps([schema, FOLD_VERSION], sort_keys=True).encode()).hexdigest()[:12]
