"""Turns a request into a command and the outcome into an answer: data, or a typed error."""

import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, TypeVar

from fast_depends.exceptions import ValidationError as ParameterError
from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json, to_json

from fairlead_schema.errors import InternalFailure, InvalidRequest, PayloadTooLarge, Refused
from fairlead_schema.ids import TenantId
from fairlead_schema.model import Model

log = logging.getLogger(__name__)

Command = TypeVar("Command", bound=Model)
Refusals: TypeAlias = Mapping[type[Exception], Callable[[Any], Refused]]
"""How a service refuses its own kinds of error. The nearest base class decides."""

TENANT: Final = "tenant"
PRINCIPAL: Final = "principal"
_TENANT: TypeAdapter[str] = TypeAdapter(TenantId)


@dataclass(frozen=True, slots=True)
class Answer:
    """The bytes that a caller gets, and the refusal that they hold, if any."""

    body: bytes
    refused: Refused | None = None


@dataclass(slots=True)
class Answerer:
    """Answers requests. Every request gets an answer, whatever its verb raises."""

    refusals: Refusals = field(default_factory=dict)
    bytes_max: int = 1_000_000
    """The size of the largest answer that the server carries."""

    async def answer(
        self, command: type[Command], body: bytes, perform: Callable[[Command], Awaitable[Model]]
    ) -> Answer:
        """Parse the body, perform the command, and encode the outcome."""
        try:
            return self.succeed(await perform(parse_command(command, body)))
        except Exception as error:  # noqa: BLE001 - a caller must never wait for a defect of ours
            return self.refuse(error, request=command.__name__)

    def succeed(self, data: Model) -> Answer:
        """The answer that holds data. Raises PayloadTooLarge: NATS would drop the answer."""
        body = encode_data(data)
        if len(body) > self.bytes_max:
            raise PayloadTooLarge(f"An answer of {len(body)} bytes exceeds {self.bytes_max}")
        return Answer(body)

    def refuse(self, error: Exception, *, request: str) -> Answer:
        """The answer to an error. An error that nobody declared is logged under a reference."""
        refused = self.refusal(error, request=request)
        return Answer(encode_refusal(refused), refused)

    def refusal(self, error: Exception, *, request: str) -> Refused:
        """The typed refusal that stands for an error. The log names the request."""
        if isinstance(error, Refused):
            return error
        for kind in type(error).__mro__:
            if kind in self.refusals:
                return self.refusals[kind](error)
        ref = f"err_{secrets.token_hex(4)}"
        log.error(
            "request failed by a defect: the caller gets the reference",
            extra={"request": request, "ref": ref},
            exc_info=error,
        )
        return InternalFailure(f"Unexpected server error, logged as {ref}", ref=ref)


def parse_command(command: type[Command], body: bytes) -> Command:
    """Read a command. Raises InvalidRequest that names the field. No body is an empty command."""
    try:
        return command.model_validate_json(body or b"{}")
    except ValidationError as error:
        raise _invalid_body(error, ()) from error


def parse_tenant(tenant: str) -> TenantId:
    """Check a tenant. Raises InvalidRequest."""
    try:
        return _TENANT.validate_python(tenant)
    except ValidationError as error:
        raise _invalid_tenant(tenant) from error


def parse_json(body: bytes) -> object:
    """Read JSON. Raises InvalidRequest. No body is an empty object."""
    try:
        value: object = from_json(body or b"{}")
    except ValueError as error:
        raise InvalidRequest(f"Invalid JSON: {error}", kind="Body") from error
    return value


def invalid_parameter(error: ParameterError) -> Refused | None:
    """What the caller did wrong, or None if a handler returned a value of the wrong type."""
    options, original = error.incoming_options, error.original_error
    if not isinstance(options, dict) or not isinstance(original, ValidationError):
        return None
    first = original.errors()[0]
    if first["loc"][0] == TENANT:
        return _invalid_tenant(str(options.get(TENANT)))
    return _invalid_body(original, first["loc"][:1])


def encode_data(data: Model) -> bytes:
    """An answer that holds data."""
    return b'{"data":%b}' % data.wire_bytes()


def encode_refusal(refused: Refused) -> bytes:
    """An answer that holds a typed error."""
    return to_json({"error": refused.body.wire()})


def _invalid_tenant(tenant: str) -> InvalidRequest:
    return InvalidRequest(f"Invalid tenant: {tenant}", kind="Params", field=None)


def _invalid_body(error: ValidationError, prefix: tuple[int | str, ...]) -> InvalidRequest:
    """The first field that does not fit. `prefix` is the handler's parameter, not the caller's."""
    first = error.errors()[0]
    path = first["loc"][len(prefix) :]
    field = ".".join(str(part) for part in path) or None
    reason = f"{field}: {first['msg']}" if field else first["msg"]
    return InvalidRequest(reason, kind="Body", field=field)
