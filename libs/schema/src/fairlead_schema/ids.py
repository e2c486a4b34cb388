"""Identifiers: the prefix says the kind, the rest is opaque. Order comes only from `seq`.

Ids become subject tokens, so they contain no dot, space or wildcard. `fairlead_service.ids` mints
ids, because minting needs a clock and randomness.
"""

import zlib
from typing import Annotated, Final, TypeAlias

from pydantic import StringConstraints

ID_LENGTH_MAX = 128
CALL_ID_LENGTH_MAX = 256
BASE62: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

_TAIL = r"[A-Za-z0-9_-]{1,120}$"


def _id_pattern(prefix: str) -> StringConstraints:
    return StringConstraints(pattern=f"^{prefix}{_TAIL}", max_length=ID_LENGTH_MAX)


SessionId: TypeAlias = Annotated[str, _id_pattern("ses")]
MessageId: TypeAlias = Annotated[str, _id_pattern("msg_")]
EventId: TypeAlias = Annotated[str, _id_pattern("evt_")]
CommitId: TypeAlias = Annotated[str, _id_pattern("cmt_")]
PermissionId: TypeAlias = Annotated[str, _id_pattern("per")]
QuestionId: TypeAlias = Annotated[str, _id_pattern("que")]
RunnerId: TypeAlias = Annotated[str, _id_pattern("run_")]
WorkerId: TypeAlias = Annotated[str, _id_pattern("wkr_")]
AttemptId: TypeAlias = Annotated[str, _id_pattern("att_")]
OutputId: TypeAlias = Annotated[str, _id_pattern("out_")]
WebhookId: TypeAlias = Annotated[str, _id_pattern("whk_")]
DeliveryId: TypeAlias = Annotated[str, _id_pattern("dlv_")]
ScheduleId: TypeAlias = Annotated[str, _id_pattern("sch_")]
AttachmentId: TypeAlias = Annotated[str, StringConstraints(pattern=r"^fil_[0-9a-f]{64}$")]
"""The SHA-256 of the content. A session stores equal content once."""

TenantId: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
CallId: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=CALL_ID_LENGTH_MAX)]

DEFAULT_TENANT = "default"

SEAL_LENGTH: Final = 4
_PAIRS: Final = tuple(first + second for second in BASE62 for first in BASE62)


def seal(unsealed: str) -> str:
    """The last characters of a minted id, computed from the characters before them.

    The seal tells a minted id from a caller's id, so that only callers' ids need a register.
    """
    value = zlib.crc32(unsealed.encode())
    return _PAIRS[value % 3844] + _PAIRS[value // 3844 % 3844]


def is_minted(id_: str) -> bool:
    """Whether Fairlead minted this id: its seal fits."""
    return id_[-SEAL_LENGTH:] == seal(id_[:-SEAL_LENGTH])
