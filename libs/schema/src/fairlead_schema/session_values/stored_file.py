"""The file that holds a stored session, and what lists show of the session meanwhile."""

from typing import Annotated

from pydantic import Field, StringConstraints

from fairlead_schema.catalog import ModelRef, Tokens
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.ids import SessionId
from fairlead_schema.location import LocationRef
from fairlead_schema.model import Model
from fairlead_schema.session_values.metadata import MetadataValue
from fairlead_schema.tools.pool_rules import PoolName

FileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}$")]
FileDigest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class StoredFile(Model):
    """An export that holds all events of a session, from the first to `seq`."""

    name: FileName
    digest: FileDigest
    """The digest in the last line of the export."""
    bytes: Annotated[int, Field(ge=0, lt=2**53)]
    seq: Annotated[int, Field(ge=1, lt=2**53)]
    """The seq of the last event. Seqs have no gaps, so it is also the number of events."""


class StoredState(StoredFile):
    """What readers see of a stored session: its file, and since when."""

    time: int
    lacks_messages: bool | None = None
    """True: the read models were made again without the file, so that they have no messages."""


class StoredProfile(Model):
    """What lists and totals need of a stored session when the read models are made again."""

    title: str
    project_id: str
    location: LocationRef
    created: int
    updated: int
    subpath: str | None = None
    pool: PoolName | None = None
    agent: str | None = None
    model: ModelRef | None = None
    parent_id: SessionId | None = None
    archived: int | None = None
    metadata: dict[str, MetadataValue] | None = None
    created_by: PrincipalName | None = None
    cost: float = 0
    tokens: Tokens = Tokens()
