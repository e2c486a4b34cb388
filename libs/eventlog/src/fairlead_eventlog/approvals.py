"""Saved approvals as values: their ids, and how new ones are added."""

from collections.abc import Sequence
from hashlib import sha256
from typing import TypeAlias

from fairlead_schema.permission import SavedPermission

SavedPermissions: TypeAlias = tuple[SavedPermission, ...]


def approval_id(project_id: str, action: str, resource: str) -> str:
    """The same approval always has the same id. The id also names the key that stores it."""
    return f"psv_{hash_token(project_id)}_{hash_token(action, resource)}"


def add_approvals(
    saved: SavedPermissions, project_id: str, action: str, resources: Sequence[str]
) -> SavedPermissions:
    """The saved approvals with new ones after them, each approval once."""
    wanted = {
        id_: SavedPermission(id=id_, project_id=project_id, action=action, resource=resource)
        for resource in resources
        if (id_ := approval_id(project_id, action, resource))
    }
    saved_ids = {permission.id for permission in saved}
    return (*saved, *(new for id_, new in wanted.items() if id_ not in saved_ids))


def project_key(id_: str) -> str | None:
    """The key of the project that an approval id belongs to; None if it is no approval id."""
    match id_.split("_"):
        case ["psv", project, _approval] if project.isalnum():
            return project
        case _:
            return None


def hash_token(*parts: str) -> str:
    """A short token for texts that a subject cannot hold."""
    return sha256("\0".join(parts).encode()).hexdigest()[:20]
