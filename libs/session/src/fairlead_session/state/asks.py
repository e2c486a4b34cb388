"""Permissions and questions that wait for people."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.ids import PermissionId, QuestionId
from fairlead_schema.permission import PermissionRequest, QuestionRequest


@dataclass(frozen=True, slots=True)
class PendingPermission:
    """A permission that waits for a person, and the agent whose rules decide about it."""

    request: PermissionRequest
    agent: str
    asked: int


@dataclass(frozen=True, slots=True)
class PendingQuestion:
    """Questions that wait for a person."""

    request: QuestionRequest
    asked: int


@dataclass(frozen=True)
class Asks:
    """Permissions and questions that wait for people, and the newest answers."""

    permissions: Mapping[PermissionId, PendingPermission] = field(default_factory=dict)
    questions: Mapping[QuestionId, PendingQuestion] = field(default_factory=dict)
    answers: Mapping[str, str] = field(default_factory=dict)
    """The newest answers in short form, by request. A repeated answer is recognised by them."""
    approved_by: PrincipalName | None = None
    """Who gave the newest permission, if its commit says so."""
