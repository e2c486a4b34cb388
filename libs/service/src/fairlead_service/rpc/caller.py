"""The principal of the request that runs now. Whoever writes on its behalf puts it into the commit.

A task keeps the caller of the request that started it, as it keeps every context variable.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from pydantic import TypeAdapter, ValidationError

from fairlead_schema.errors import InvalidRequest
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.identity.restrictions import Restrictions
from fairlead_schema.subjects import BY_HEADER, RESTRICTIONS_HEADER

_CALLER: Final[ContextVar[PrincipalName | None]] = ContextVar("fairlead_caller", default=None)
_UNRESTRICTED: Final = Restrictions()
_RESTRICTIONS: Final[ContextVar[Restrictions]] = ContextVar(
    "fairlead_restrictions", default=_UNRESTRICTED
)
_NAME: Final[TypeAdapter[str]] = TypeAdapter(PrincipalName)


def current_caller() -> PrincipalName | None:
    """The principal of the request that runs now; None if a service acts for itself."""
    return _CALLER.get()


def current_restrictions() -> Restrictions:
    """What the sessions of the caller may use."""
    return _RESTRICTIONS.get()


@contextmanager
def caller_of(headers: Mapping[str, str] | None) -> Iterator[None]:
    """Set the caller for the length of a block, from the headers of a service's request.

    Raises InvalidRequest.
    """
    name, raw = (headers or {}).get(BY_HEADER), (headers or {}).get(RESTRICTIONS_HEADER)
    caller = None if name is None else _parse(name)
    restrictions = _UNRESTRICTED if raw is None else _parse_restrictions(raw)
    token, restricted = _CALLER.set(caller), _RESTRICTIONS.set(restrictions)
    try:
        yield
    finally:
        _RESTRICTIONS.reset(restricted)
        _CALLER.reset(token)


def _parse(name: str) -> PrincipalName:
    try:
        return _NAME.validate_python(name)
    except ValidationError as error:
        raise InvalidRequest(f"{BY_HEADER} is not a principal", kind="Headers") from error


def _parse_restrictions(raw: str) -> Restrictions:
    try:
        return Restrictions.model_validate_json(raw)
    except ValidationError as error:
        reason = f"{RESTRICTIONS_HEADER} cannot be read"
        raise InvalidRequest(reason, kind="Headers") from error
