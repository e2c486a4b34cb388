"""The prefix a provider may have cached: what one turn sent must open what the next one sends.

A fingerprint like `sys:1f0c… tools:9ab2… msgs:17:ef56…` tells which part changed when one did.
"""

import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, Literal, TypeAlias

from pydantic_core import to_json

from fairlead_schema.catalog import ModelRef
from fairlead_schema.provider.request import ModelRequest, Turn
from fairlead_session.state.session import Session
from fairlead_session.turn.request import LAST_STEP_TURN

PrefixPart: TypeAlias = Literal["system", "tools", "messages", "pruning"]

LENGTH: Final = 12
_FORM: Final = re.compile(r"sys:(\w*) tools:(\w*) msgs:(\d+):(\w*)")


@dataclass(frozen=True, slots=True)
class Prefix:
    """Short hashes of a request's stable parts; of its messages one for every length."""

    system: str
    tools: str
    messages: tuple[str, ...]

    def fingerprint(self) -> str:
        """The fingerprint."""
        count = len(self.messages) - 1
        return f"sys:{self.system} tools:{self.tools} msgs:{count}:{self.messages[-1]}"


def prefix(request: ModelRequest) -> Prefix:
    """The prefix of a request. Words that urge a last answer are no part of any history.

    A final request offers no tools on purpose (E-23), and says nothing of those around it.
    """
    final = request.turns[-1:] == (LAST_STEP_TURN,)
    turns = request.turns[:-1] if final else request.turns
    return Prefix(_hash(request.system), "" if final else _hash(request.tools), _chain(turns))


def fingerprint(request: ModelRequest) -> str:
    """What the log remembers of a request."""
    return prefix(request).fingerprint()


def broken_part(previous: str, current: Prefix, *, epoch_changed: bool) -> PrefixPart | None:
    """Which part of an earlier request the current one does not begin with, in a provider's order.

    In a new epoch the prefix begins anew; a fingerprint that cannot be read says nothing.
    """
    form = _FORM.fullmatch(previous)
    if epoch_changed or form is None:
        return None
    system, tools, count, messages = form.groups()
    if tools and current.tools and tools != current.tools:
        return "tools"
    if system != current.system:
        return "system"
    kept = current.messages[: int(count) + 1]
    return None if len(kept) == int(count) + 1 and kept[-1] == messages else "messages"


def broken_since_last_request(
    session: Session, current: Prefix, agent: str, model: ModelRef
) -> PrefixPart | None:
    """What broke since the session's last request; another agent or model begins anew as well."""
    asked = session.requests.last
    if asked is None or session.epoch is None:
        return None
    now = (agent, model.provider_id, model.id, session.epoch.seq)
    then = (asked.agent, asked.model.provider_id, asked.model.id, asked.epoch)
    source = broken_part(asked.fingerprint, current, epoch_changed=now != then)
    pruned = session.requests.prune_cutoff is not None and not asked.pruned
    return "pruning" if pruned and source == "messages" else source


def expected_cached_tokens(session: Session, current: Prefix, agent: str, model: ModelRef) -> int:
    """How many tokens a provider may find in its cache: all of a last request that opens this one."""
    asked = session.requests.last
    if (
        asked is None
        or session.epoch is None
        or broken_since_last_request(session, current, agent, model)
    ):
        return 0
    now = (agent, model.provider_id, model.id, session.epoch.seq)
    then = (asked.agent, asked.model.provider_id, asked.model.id, asked.epoch)
    return asked.tokens if now == then else 0


def _chain(turns: tuple[Turn, ...]) -> tuple[str, ...]:
    """The hash of the first 0, 1, 2… turns."""
    running, chain = sha256(), [""]
    for turn in turns:
        running.update(to_json(turn) + b"\n")
        chain.append(running.hexdigest()[:LENGTH])
    return tuple(chain)


def _hash(value: object) -> str:
    return sha256(to_json(value)).hexdigest()[:LENGTH]
