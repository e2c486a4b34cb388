"""What a runner asks of the files of a location: take a snapshot, prepare a revert, change files back."""

from typing import Annotated, TypeAlias

from pydantic import StringConstraints

from fairlead_schema.ids import SessionId, TenantId
from fairlead_schema.location import LocationRef
from fairlead_schema.model import Model
from fairlead_schema.session_values.revert_state import RevertedFile

TreeId: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]
"""The name of a snapshot: the git tree of the files."""


class CaptureFiles(Model):
    """Take a snapshot of a location, and name the files that changed since another one."""

    tenant: TenantId
    session_id: SessionId
    location: LocationRef
    since: TreeId | None = None


class CapturedFiles(Model):
    """The snapshot, or why there is none. Absent files are too many to name."""

    snapshot: TreeId | None = None
    files: tuple[str, ...] | None = None
    unavailable: str | None = None


class StepFiles(Model):
    """The files before and after one step. Without an end, the files as they are now."""

    start: TreeId
    end: TreeId | None = None


class PrepareRevert(Model):
    """Find the tree to go back to. No file changes yet."""

    tenant: TenantId
    session_id: SessionId
    location: LocationRef
    steps: tuple[StepFiles, ...] = ()
    original: TreeId | None = None
    """The files before the first stage, if an earlier stage has stored them."""


class PreparedRevert(Model):
    """The files as they are, and as they will be; or why that is impossible."""

    original: TreeId | None = None
    target: TreeId | None = None
    refused: str | None = None


class RestoreFiles(Model):
    """Change files from one tree to another. The log must say that a runner began exactly this."""

    tenant: TenantId
    session_id: SessionId
    location: LocationRef
    original: TreeId
    before: TreeId
    target: TreeId


class RestoredFiles(Model):
    """What differs from the original now; or why no file changed."""

    diff: str | None = None
    files: tuple[RevertedFile, ...] = ()
    refused: str | None = None
    again: bool = False
    """Whether the same request may succeed later: the files may be in between."""
