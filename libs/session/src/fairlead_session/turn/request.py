"""Builds a turn's canonical request from the session, its agent and its model."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

from fairlead_schema.catalog import ModelRef
from fairlead_schema.provider.request import (
    AssistantTurn,
    Generation,
    ModelRequest,
    TextPart,
    ToolChoice,
    ToolDefinition,
)
from fairlead_schema.tools.request import ToolInfo
from fairlead_session.identity_memo import kept_by_identity
from fairlead_session.state.session import Session
from fairlead_session.turn import epoch
from fairlead_session.turn.lowered_history import LoweredHistory, lower_history
from fairlead_session.turn.stream_calls import Offer

OFFERS_MAX: Final = 64
LAST_STEP = (
    "This is the last step I may take. I will not call any more tools; I will say what was done, "
    "what is left, and answer with what I know."
)
LAST_STEP_TURN = AssistantTurn((TextPart(LAST_STEP),))
"""The assistant message that begins the answer of a final step."""
_HEX_ID = re.compile(r"^ses_([0-9a-f]{64})$")


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """What a request says about its sender: the agent's system prompt, the model, its options."""

    model: ModelRef
    api_model: str
    system: str | None = None
    output_tokens_max: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)


def build(
    session: Session,
    identity: ModelIdentity,
    offer: Offer = Offer(),  # noqa: B008
    history: LoweredHistory | None = None,
) -> ModelRequest:
    """The request of the next provider turn. A final request offers no tools.

    `history` is the lowered history of this session, if the caller has it.
    """
    assert session.epoch is not None, "a request is built inside an epoch"
    system = (identity.system or "", epoch.text(session.epoch.baseline))
    turns = (history or lower_history(session, identity.model)).turns
    tools = () if offer.final else _definitions(offer.tools)
    contract = offer.output
    choice: ToolChoice = "none" if offer.final else "auto"
    if contract is not None and contract.uses_tool:
        choice = contract.choose_tool(alone=not tools)
        tools = (*tools, contract.definition())
    # An answer with a schema has no room for the words that begin a last answer.
    last = offer.final and contract is None
    return ModelRequest(
        model=identity.api_model,
        system=tuple(part for part in system if part),
        turns=(*turns, LAST_STEP_TURN) if last else turns,
        tools=tools,
        tool_choice=choice,
        output_schema=None if contract is None or contract.uses_tool else contract.schema,
        generation=Generation(max_tokens=identity.output_tokens_max),
        cache_key=cache_key(session.id),
        headers={**identity.headers, **correlation(session)},
        options=dict(identity.options),
    )


@kept_by_identity(OFFERS_MAX)
def _definitions(tools: Mapping[str, ToolInfo]) -> tuple[ToolDefinition, ...]:
    return tuple(
        ToolDefinition(tool.name, tool.description, tool.input_schema) for tool in tools.values()
    )


def correlation(session: Session) -> dict[str, str]:
    """Headers that let a provider serve a session from one machine."""
    headers = {"x-session-affinity": session.id, "X-Session-Id": session.id}
    parent = session.profile.parent_id if session.profile else None
    return {**headers, "x-parent-session-id": parent} if parent else headers


def cache_key(session_id: str) -> str:
    """The session id as a cache key, no longer than providers accept."""
    match = _HEX_ID.match(session_id)
    if match:
        return match[1]
    return session_id if len(session_id) <= 64 else sha256(session_id.encode()).hexdigest()  # noqa: PLR2004
