"""How a run ends: success, cancelled, interrupts for people, or an error. Pure."""

from typing import Any, Final, TypeAlias

from ag_ui.core import (
    BaseEvent,
    Interrupt,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedSuccessOutcome,
    TokenUsage,
)

from fairlead_gateway.turn_view.turn_progress import STOPPED, TurnProgress
from fairlead_schema.catalog import Tokens

Json: TypeAlias = dict[str, Any]

PERMISSION_SCHEMA: Final[Json] = {
    "type": "object",
    "properties": {
        "reply": {"enum": ["once", "always", "reject"]},
        "message": {"type": "string"},
    },
    "required": ["reply"],
}
QUESTION_SCHEMA: Final[Json] = {
    "type": "object",
    "properties": {
        "answers": {
            "type": "array",
            "items": {"type": "array", "items": {"type": "string"}},
        }
    },
    "required": ["answers"],
}


def end_of(progress: TurnProgress, thread_id: str, run_id: str) -> BaseEvent:
    """The last event of a run whose turn is over, or waits for people."""
    names: Json = {"thread_id": thread_id, "run_id": run_id, "usage": _usage(progress) or None}
    if progress.asks and not progress.is_over:
        interrupts = [interrupt_of(ask) for ask in progress.asks.values()]
        outcome = RunFinishedInterruptOutcome(interrupts=interrupts)
        return RunFinishedEvent(**names, outcome=outcome)
    if progress.is_withdrawn or (progress.rested in STOPPED and not progress.is_answered):
        return RunFinishedEvent(**names, outcome=RunFinishedCancelledOutcome())
    if progress.failure is not None:
        text = progress.failure.get("message", "the turn failed")
        code = progress.failure.get("code") or "turn-failed"
        return RunErrorEvent(message=text, code=code, usage=names["usage"])
    if not progress.is_answered and progress.rested not in {None, "idle"}:
        text = progress.detail or f"The session rests: {progress.rested}"
        return RunErrorEvent(message=text, code=progress.rested, usage=names["usage"])
    return RunFinishedEvent(
        **names,
        outcome=RunFinishedSuccessOutcome(),
        result=(progress.output or {}).get("value"),
    )


def _usage(progress: TurnProgress) -> list[TokenUsage]:
    """What the run used, by model. The protocol counts the cache and the reasoning in its totals, we beside."""
    return [_usage_of(name, tokens) for name, tokens in progress.usage.items()]


def _usage_of(name: str, tokens: Tokens) -> TokenUsage:
    provider, _, model = name.partition("/")
    given = tokens.input + tokens.cache.read + tokens.cache.write
    said = tokens.output + tokens.reasoning
    return TokenUsage(
        provider=provider or None,
        model=model or None,
        input_tokens=given,
        output_tokens=said,
        total_tokens=given + said,
        # Our zero may mean that the provider said nothing.
        reasoning_tokens=tokens.reasoning or None,
        cached_input_tokens=tokens.cache.read or None,
        cache_write_input_tokens=tokens.cache.write or None,
    )


def interrupt_of(ask: Json) -> Interrupt:
    """A permission or a question as an interrupt. The metadata has the whole request."""
    source = ask.get("source") or ask.get("tool") or {}
    is_question = "questions" in ask
    if is_question:
        text = "\n".join(one["question"] for one in ask["questions"])
    else:
        text = f"{ask['action']}: {', '.join(ask['resources'])}"
    return Interrupt(
        id=ask["id"],
        reason="input_required" if is_question else "tool_call",
        message=text,
        tool_call_id=source.get("callID"),
        response_schema=QUESTION_SCHEMA if is_question else PERMISSION_SCHEMA,
        metadata={"fairlead": ask},
    )
