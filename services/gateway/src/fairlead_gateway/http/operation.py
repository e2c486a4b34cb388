"""Routes as data: input, answer and refusals. The dispatcher and the OpenAPI document read them."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from fairlead_eventlog.ports import Head
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_gateway.reads.projection_wait import wait_until_projected
from fairlead_gateway.runtime import Runtime
from fairlead_schema.errors import Refused, ServiceUnavailable
from fairlead_schema.identity.principal import Principal
from fairlead_schema.identity.scopes import Scope
from fairlead_schema.ids import TenantId
from fairlead_schema.record import RecordError
from fairlead_schema.subjects import Address

Query = TypeVar("Query", bound=BaseModel)
Body = TypeVar("Body", bound=BaseModel)
Media: TypeAlias = Literal["application/json", "text/event-stream", "application/octet-stream"]

SESSION_PARAMETER: Final = "{sessionID}"


@dataclass(frozen=True, slots=True)
class TargetSession:
    """The session of a request with its head, or with the error that kept the log from answering."""

    at: Address
    head: Head | None
    log_error: Exception | None = None


@dataclass(frozen=True, slots=True)
class ApiRequest(Generic[Query, Body]):
    """A request after all checks of its operation, with its parsed query and body."""

    http: Request
    runtime: Runtime
    principal: Principal
    query: Query
    body: Body
    target: TargetSession | None

    @property
    def tenant(self) -> TenantId:
        """The tenant of the caller. A request cannot name another."""
        return self.principal.tenant

    @property
    def at(self) -> Address:
        """The session of a session route."""
        assert self.target is not None, "only session routes name a session"
        return self.target.at

    @property
    def head(self) -> Head:
        """The head of the session in the log. Raises the error that kept the log from answering."""
        assert self.target is not None, "only session routes name a session"
        if self.target.head is None:
            raise self.target.log_error or ServiceUnavailable(
                "The log is not available", service="nats"
            )
        return self.target.head

    @property
    def unreadable(self) -> RecordError | None:
        """Why the end of the session's log cannot be read; None if it can."""
        assert self.target is not None, "only session routes name a session"
        error = self.target.log_error
        return error if isinstance(error, RecordError) else None

    async def is_list_stale(self) -> bool:
        """Wait until the read models show what the caller wrote. True: they did not in time."""
        timeout_s = self.runtime.settings.fresh_timeout_s
        return not await self.runtime.own_writes.wait_until_visible(
            self.principal.name, self.runtime.read_model, timeout_s=timeout_s
        )

    async def is_stale(self) -> bool:
        """Wait until the read models reach the head. True: they did not in time."""
        assert self.target is not None, "only session routes name a session"
        head, settings = self.target.head, self.runtime.settings
        if head is None:
            return True
        timeout_s = settings.fresh_timeout_s
        return not await wait_until_projected(
            self.runtime.read_model, self.at, head.seq, timeout_s=timeout_s
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation(Generic[Query, Body]):
    """One method of one path."""

    id: str
    method: Literal["GET", "POST", "PATCH", "DELETE"]
    path: str
    scope: Scope | None
    """What the caller must be allowed to do; None: anybody may call. A verb has its own scope too."""
    summary: str
    respond: Callable[[ApiRequest[Query, Body]], Awaitable[Response]]
    query: type[Query] = EmptyInput  # type: ignore[assignment] # what `respond` takes
    body: type[Body] = EmptyInput  # type: ignore[assignment]
    answer: type[BaseModel] | None
    """None: a success has no body, or a body without a schema."""
    status: Literal[200, 202, 204] = 200
    errors: tuple[type[Refused], ...] = ()
    media: Media = "application/json"
    takes: Media = "application/json"
    """What the body is. A body that is no JSON is read by the operation itself."""
    may_lack_body: bool = False
    """True takes no body for an empty object."""
    commands: bool = False
    """True skips the look-up of the session, because ingest or the fold refuses an unknown one."""
    serves_stored: bool = False
    """True answers from the read models or from the marker, also if the session is stored in a file."""

    @property
    def in_session(self) -> bool:
        return SESSION_PARAMETER in self.path


AnyOperation: TypeAlias = Operation[Any, Any]
