"""The prefix that a provider may have cached: each request must begin with the last one.

A fingerprint like `sys:1f0c… tools:9ab2… msgs:17:ef56…` shows which part of a request changed.
"""

import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, Literal, TypeAlias

from pydantic_core import to_json

from fairlead_schema.catalog import ModelRef
from fairlead_schema.provider.request import ModelRequest, ToolDefinition, Turn
from fairlead_session.identity_memo import kept_by_identity
from fairlead_session.state.model_requests import LastRequest
from fairlead_session.state.session import Session
from fairlead_session.turn.lowered_history import HASH_LENGTH, LoweredHistory
from fairlead_session.turn.request import LAST_STEP_TURN, OFFERS_MAX

PrefixPart: TypeAlias = Literal["system", "tools", "messages", "pruning"]

_NARROWED: Final = "own"
_FORM: Final = re.compile(r"sys:(\w*) tools:(\w*) msgs:(\d+):(\w*)")


@dataclass(frozen=True, slots=True)
class Prefix:
    """Short hashes of a request's stable parts. The messages have one hash for every length."""

    system: str
    tools: str
    messages: tuple[str, ...]

    def fingerprint(self) -> str:
        """The fingerprint that the log stores."""
        count = len(self.messages) - 1
        return f"sys:{self.system} tools:{self.tools} msgs:{count}:{self.messages[-1]}"


def prefix(
    request: ModelRequest, history: LoweredHistory | None = None, *, narrowed: bool = False
) -> Prefix:
    """The prefix of a request. The text that asks for a last answer is not part of it.

    A final request offers no tools on purpose (E-23), so its tools have no hash. `history` is the
    lowered history that the request was built from, if the caller has it. `narrowed` tools are those
    that a prompt chose.
    """
    final = request.turns[-1:] == (LAST_STEP_TURN,)
    turns = request.turns[:-1] if final else request.turns
    chain = history.chain if history is not None else _chain(turns)
    tools = "" if final else _tools_hash(request.tools)
    mark = _NARROWED if narrowed and tools else ""
    return Prefix(_hash(request.system), mark + tools, chain)


def is_narrowed(previous: str, current: Prefix) -> bool:
    """Whether a prompt chose the tools of one of two requests, so that they differ on purpose."""
    return current.tools.startswith(_NARROWED) or f"tools:{_NARROWED}" in previous


def fingerprint(request: ModelRequest) -> str:
    """The fingerprint of a request."""
    return prefix(request).fingerprint()


def broken_part(previous: str, current: Prefix, *, epoch_changed: bool) -> PrefixPart | None:
    """The first part that differs from an earlier request, in the order of a provider's cache.

    None if the request begins with the earlier one, in a new epoch, or without a fingerprint.
    """
    form = _FORM.fullmatch(previous)
    if epoch_changed or form is None:
        return None
    system, tools, count, messages = form.groups()
    if tools and current.tools and tools != current.tools:
        return "tools"
    if system != current.system:
        return "system"
    length = int(count) + 1
    if len(current.messages) >= length and current.messages[length - 1] == messages:
        return None
    return "messages"


def broken_since_last_request(
    session: Session, current: Prefix, agent: str, model: ModelRef
) -> PrefixPart | None:
    """The part that broke since the last request. Another agent or model starts a new prefix."""
    last = session.requests.last
    if last is None:
        return None
    epoch_changed = not _continues(session, last, agent, model)
    part = broken_part(last.fingerprint, current, epoch_changed=epoch_changed)
    pruned = session.requests.prune_cutoff is not None and not last.pruned
    return "pruning" if pruned and part == "messages" else part


def expected_cached_tokens(session: Session, current: Prefix, agent: str, model: ModelRef) -> int:
    """The tokens that a provider may find in its cache: all tokens of the last request, or none."""
    last = session.requests.last
    if last is None or not _continues(session, last, agent, model):
        return 0
    return 0 if broken_since_last_request(session, current, agent, model) else last.tokens


def _continues(session: Session, last: LastRequest, agent: str, model: ModelRef) -> bool:
    """Whether a request has the agent, the model and the epoch of the last request."""
    if session.epoch is None:
        return False
    current = (agent, model.provider_id, model.id, session.epoch.seq)
    return current == (last.agent, last.model.provider_id, last.model.id, last.epoch)


def _chain(turns: tuple[Turn, ...]) -> tuple[str, ...]:
    """The hash of the first 0, 1, 2… turns."""
    running, chain = sha256(), [""]
    for turn in turns:
        running.update(to_json(turn) + b"\n")
        chain.append(running.hexdigest()[:HASH_LENGTH])
    return tuple(chain)


@kept_by_identity(OFFERS_MAX)
def _tools_hash(tools: tuple[ToolDefinition, ...]) -> str:
    return _hash(tools)


def _hash(value: object) -> str:
    return sha256(to_json(value)).hexdigest()[:HASH_LENGTH]
