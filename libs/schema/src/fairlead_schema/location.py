"""Where a session lives: a directory, perhaps inside a workspace, always inside a project."""

from hashlib import sha256
from typing import Annotated

from pydantic import StringConstraints

from fairlead_schema.model import Model


class LocationRef(Model):
    """The place a session's tools and context belong to."""

    directory: Annotated[str, StringConstraints(min_length=1, max_length=4096)]
    workspace_id: Annotated[str, StringConstraints(pattern=r"^wrk")] | None = None


class Project(Model):
    """What approvals and listings are grouped by."""

    id: str
    directory: str


def project_id(directory: str) -> str:
    """A stable name for the project at a directory."""
    return "prj_" + sha256(directory.encode()).hexdigest()[:24]


class LocationInfo(Model):
    """A location together with the project that holds it."""

    directory: str
    workspace_id: str | None = None
    project: Project
