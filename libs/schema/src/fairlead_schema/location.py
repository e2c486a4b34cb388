"""Locations: the directory a session works in, its project, and perhaps its workspace."""

from hashlib import sha256
from typing import Annotated

from pydantic import StringConstraints

from fairlead_schema.model import Model


class LocationRef(Model):
    """The directory that a session's tools and context use."""

    directory: Annotated[str, StringConstraints(min_length=1, max_length=4096)]
    workspace_id: Annotated[str, StringConstraints(pattern=r"^wrk")] | None = None


class Project(Model):
    """A group of sessions: approvals and listings belong to a project."""

    id: str
    directory: str


def project_id(directory: str) -> str:
    """The stable id of the project at a directory."""
    return "prj_" + sha256(directory.encode()).hexdigest()[:24]


class LocationInfo(Model):
    """A location with its project."""

    directory: str
    workspace_id: str | None = None
    project: Project
