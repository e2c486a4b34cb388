"""The request of a runner to take the content that the attachments of a prompt name."""

from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.ids import SessionId, TenantId
from fairlead_schema.location import LocationRef
from fairlead_schema.model import Model
from fairlead_schema.prompt import AttachedContent, PromptFile


class TakeAttachments(Model):
    """Asks the tools service of a location for the content of some files of one prompt."""

    tenant: TenantId
    session_id: SessionId
    location: LocationRef
    project_id: str
    agent: str
    principal: PrincipalName | None = None
    """Whom stored content counts for."""
    files: tuple[PromptFile, ...]


class TakenAttachments(Model):
    """What the model is shown of each file, in the order of the request."""

    contents: tuple[AttachedContent, ...]
