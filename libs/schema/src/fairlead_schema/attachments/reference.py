"""References to stored attachments: the URI of a file whose content is in the object store."""

import re
from hashlib import sha256
from typing import Final

from fairlead_schema.ids import AttachmentId, SessionId

ATTACHMENT_PREFIX: Final = "fairlead-file:/"
"""The prefix of a stored attachment's URI. It names content within one session."""

_ID_PREFIX: Final = "fil_"
_URI: Final = re.compile(re.escape(ATTACHMENT_PREFIX) + "(fil_[0-9a-f]{64})")


def attachment_uri(attachment_id: AttachmentId) -> str:
    """The URI of a stored attachment."""
    return ATTACHMENT_PREFIX + attachment_id


def attachment_id(uri: str) -> AttachmentId | None:
    """The stored attachment that a URI names, or None for any other URI."""
    match = _URI.fullmatch(uri)
    return match[1] if match else None


def is_attachment(id_: str) -> bool:
    """Whether an id is that of an attachment, and not of a managed output."""
    return id_.startswith(_ID_PREFIX)


def digest_of(attachment_id: AttachmentId) -> str:
    """The SHA-256 of the content, in hex."""
    return attachment_id.removeprefix(_ID_PREFIX)


def id_of_digest(digest: str) -> AttachmentId:
    """The id of content with this SHA-256, in hex."""
    return f"{_ID_PREFIX}{digest}"


def id_of_content(content: bytes) -> AttachmentId:
    """The id of some content."""
    return id_of_digest(sha256(content).hexdigest())


def object_name(session_id: SessionId, attachment_id: AttachmentId) -> str:
    """The name under which a session stores content. Another session has an object of its own."""
    return f"out_{sha256(f'{session_id} {attachment_id}'.encode()).hexdigest()}"
