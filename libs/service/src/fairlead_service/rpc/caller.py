"""The principal of the request that runs now. Whoever writes on its behalf puts it into the commit.

A task keeps the caller of the request that started it, as it keeps every context variable.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from pydantic import TypeAdapter, ValidationError

from fairlead_schema import subjects
from fairlead_schema.errors import InvalidRequest
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.identity.request_context import (
    CURRENT_REQUEST,
    REQUEST_HEADER,
    parse_request_id,
)
from fairlead_schema.identity.restrictions import Restrictions
from fairlead_schema.subjects import (
    BY_HEADER,
    KEY_HEADER,
    KEY_LENGTH_MAX,
    RESTRICTIONS_HEADER,
)

_CALLER: Final[ContextVar[PrincipalName | None]] = ContextVar("fairlead_caller", default=None)
_UNRESTRICTED: Final = Restrictions()
_RESTRICTIONS: Final[ContextVar[Restrictions]] = ContextVar(
    "fairlead_restrictions", default=_UNRESTRICTED
)
_KEY: Final[ContextVar[str | None]] = ContextVar("fairlead_idempotency_key", default=None)
_OWN_DOOR: Final[ContextVar[bool]] = ContextVar("fairlead_own_door", default=False)
_NAME: Final[TypeAdapter[str]] = TypeAdapter(PrincipalName)


def current_caller() -> PrincipalName | None:
    """The principal of the request that runs now; None if a service acts for itself."""
    return _CALLER.get()


def current_restrictions() -> Restrictions:
    """What the sessions of the caller may use."""
    return _RESTRICTIONS.get()


def current_key() -> str | None:
    """The idempotency key of the request that runs now; None without one."""
    return _KEY.get()


def by_own_client() -> bool:
    """Whether a tenant's own client sent the request: its subject proves the verb's scope alone."""
    return _OWN_DOOR.get()


@contextmanager
def caller_of(subject: str, headers: Mapping[str, str] | None) -> Iterator[None]:
    """Set the caller of a request for the length of a block. Raises InvalidRequest.

    The subject of a tenant's own client names the caller, and its headers prove nothing. On every
    other subject the headers of a service name the caller and its restrictions. Whoever sends a key
    chooses it for its own commands alone, so that every caller may name one.
    """
    own = subjects.principal_of(subject)
    proven = {} if own is not None or headers is None else headers
    name, raw = own or proven.get(BY_HEADER), proven.get(RESTRICTIONS_HEADER)
    caller = _CALLER.set(None if name is None else _parse(name))
    restrictions = _RESTRICTIONS.set(_UNRESTRICTED if raw is None else _parse_restrictions(raw))
    door = _OWN_DOOR.set(own is not None)
    key = _KEY.set(None if headers is None else _parse_key(headers.get(KEY_HEADER)))
    request = CURRENT_REQUEST.set(
        None if headers is None else parse_request_id(headers.get(REQUEST_HEADER))
    )
    try:
        yield
    finally:
        CURRENT_REQUEST.reset(request)
        _KEY.reset(key)
        _OWN_DOOR.reset(door)
        _RESTRICTIONS.reset(restrictions)
        _CALLER.reset(caller)


def _parse(name: str) -> PrincipalName:
    try:
        return _NAME.validate_python(name)
    except ValidationError as error:
        raise InvalidRequest("the request names no valid principal", kind="Headers") from error


def _parse_key(key: str | None) -> str | None:
    if key is not None and not 0 < len(key) <= KEY_LENGTH_MAX:
        text = f"{KEY_HEADER} must have 1 to {KEY_LENGTH_MAX} characters"
        raise InvalidRequest(text, kind="Headers", field=KEY_HEADER)
    return key


def _parse_restrictions(raw: str) -> Restrictions:
    try:
        return Restrictions.model_validate_json(raw)
    except ValidationError as error:
        reason = f"{RESTRICTIONS_HEADER} cannot be read"
        raise InvalidRequest(reason, kind="Headers") from error
