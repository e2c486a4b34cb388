"""What a runner asks of two locations: to prepare, apply and discard the changes of a session that moves."""

from fairlead_schema.ids import SessionId, TenantId
from fairlead_schema.location import LocationRef
from fairlead_schema.model import Model
from fairlead_schema.tools.file_snapshot import TreeId


class PrepareTransfer(Model):
    """Find the changes at the source, and how the destination looks with them. No file changes yet."""

    tenant: TenantId
    session_id: SessionId
    source: LocationRef
    destination: LocationRef


class TransferTrees(Model):
    """The files at the destination before and after, and at the source with and without the changes."""

    before: TreeId
    target: TreeId
    changed: TreeId
    kept: TreeId


class PreparedTransfer(Model):
    """The trees; none if there is nothing to transfer; or why the changes cannot move."""

    trees: TransferTrees | None = None
    subdirectory: str | None = None
    refused: str | None = None


class TransferFiles(Model):
    """Apply the changes at the destination, or discard them at the source, as the log has begun."""

    tenant: TenantId
    session_id: SessionId
    source: LocationRef
    destination: LocationRef
    request: int
    """The sequence of the request for the move."""
    trees: TransferTrees


class TransferredFiles(Model):
    """What stopped the transfer, if anything did."""

    refused: str | None = None
    again: bool = False
    """Whether the same request may succeed later: the files may be in between."""
