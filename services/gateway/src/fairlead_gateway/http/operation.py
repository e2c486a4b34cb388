"""Routes as data: what each takes, answers and refuses. Serving and documenting both read this."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from fairlead_eventlog.ports import Head
from fairlead_gateway.reads.projection_wait import fresh
from fairlead_gateway.runtime import Runtime
from fairlead_schema.errors import Refused, ServiceUnavailable
from fairlead_schema.ids import TenantId
from fairlead_schema.subjects import Address

Query = TypeVar("Query", bound=BaseModel)
Body = TypeVar("Body", bound=BaseModel)
Media: TypeAlias = Literal["application/json", "text/event-stream", "application/octet-stream"]

SESSION_PARAMETER: Final = "{sessionID}"


@dataclass(frozen=True, slots=True)
class Found:
    """A session that exists, and its head, or why the log could not tell."""

    at: Address
    head: Head | None
    away: Exception | None = None


@dataclass(frozen=True, slots=True)
class Call(Generic[Query, Body]):
    """One request that passed every check of its operation."""

    request: Request
    runtime: Runtime
    tenant: TenantId
    query: Query
    body: Body
    found: Found | None

    @property
    def at(self) -> Address:
        """The session of a session route."""
        assert self.found is not None, "only session routes name a session"
        return self.found.at

    @property
    def head(self) -> Head:
        """The session's head as the log gave it. Raises why it could not be asked."""
        assert self.found is not None, "only session routes name a session"
        if self.found.head is None:
            raise self.found.away or ServiceUnavailable("The log is not available", service="nats")
        return self.found.head

    async def stale(self) -> bool:
        """Wait for the read models to reach the head; true when they did not."""
        assert self.found is not None, "only session routes name a session"
        head, settings = self.found.head, self.runtime.settings
        if head is None:
            return True
        timeout_s = settings.fresh_timeout_s
        return not await fresh(self.runtime.read, self.at, head.seq, timeout_s=timeout_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation(Generic[Query, Body]):
    """One method of one path."""

    id: str
    method: Literal["GET", "POST", "PATCH", "DELETE"]
    path: str
    summary: str
    respond: Callable[[Call[Query, Body]], Awaitable[Response]]
    query: type[Query]
    body: type[Body]
    answer: type[BaseModel] | None
    """None: success has no body, or one that is not ours to describe."""
    status: Literal[200, 202, 204] = 200
    errors: tuple[type[Refused], ...] = ()
    media: Media = "application/json"
    commands: bool = False
    """Whoever serves it, ingest or the fold, finds out whether the session exists: no look first."""

    @property
    def in_session(self) -> bool:
        return SESSION_PARAMETER in self.path


AnyOperation: TypeAlias = Operation[Any, Any]
