"""Identifiers: the prefix says the kind, the rest is opaque. Order comes only from `seq`.

Ids become subject tokens, so they hold no dot, space or wildcard. Minting needs a clock and
randomness and therefore lives in the shells (`fairlead_service.ids`).
"""

import zlib
from typing import Annotated, Final, TypeAlias

from pydantic import StringConstraints

ID_LENGTH_MAX = 128
CALL_ID_LENGTH_MAX = 256
BASE62: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

_TAIL = r"[A-Za-z0-9_-]{1,120}$"


def _prefixed(prefix: str) -> StringConstraints:
    return StringConstraints(pattern=f"^{prefix}{_TAIL}", max_length=ID_LENGTH_MAX)


SessionId: TypeAlias = Annotated[str, _prefixed("ses")]
MessageId: TypeAlias = Annotated[str, _prefixed("msg_")]
EventId: TypeAlias = Annotated[str, _prefixed("evt_")]
CommitId: TypeAlias = Annotated[str, _prefixed("cmt_")]
PermissionId: TypeAlias = Annotated[str, _prefixed("per")]
QuestionId: TypeAlias = Annotated[str, _prefixed("que")]
RunnerId: TypeAlias = Annotated[str, _prefixed("run_")]
WorkerId: TypeAlias = Annotated[str, _prefixed("wkr_")]
AttemptId: TypeAlias = Annotated[str, _prefixed("att_")]
OutputId: TypeAlias = Annotated[str, _prefixed("out_")]

TenantId: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
CallId: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=CALL_ID_LENGTH_MAX)]

DEFAULT_TENANT = "default"

SEAL_LENGTH: Final = 4
_PAIRS: Final = tuple(first + second for second in BASE62 for first in BASE62)


def seal(unsealed: str) -> str:
    """The last characters of an id that Fairlead mints, computed from the others.

    They tell a minted id from a caller's, so that only callers' ids need a register of their use.
    """
    value = zlib.crc32(unsealed.encode())
    return _PAIRS[value % 3844] + _PAIRS[value // 3844 % 3844]


def minted(id_: str) -> bool:
    """Whether an id bears Fairlead's own seal."""
    return id_[-SEAL_LENGTH:] == seal(id_[:-SEAL_LENGTH])
