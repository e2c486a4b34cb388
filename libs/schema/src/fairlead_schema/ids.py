"""Identifiers: the prefix says the kind, the rest is opaque. Order comes only from `seq`.

Ids become subject tokens, so they hold no dot, space or wildcard. Minting needs a clock and
randomness and therefore lives in the shells (`fairlead_service.ids`).
"""

from typing import Annotated, TypeAlias

from pydantic import StringConstraints

ID_LENGTH_MAX = 128

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

TenantId: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
CallId: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=256)]

DEFAULT_TENANT = "default"
