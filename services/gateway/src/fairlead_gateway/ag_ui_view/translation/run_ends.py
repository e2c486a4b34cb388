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
    names: Json = {"thread_id": thread_id, "run_id": run_id}
    if progress.asks and not progress.is_over:
        interrupts = [interrupt_of(ask) for ask in progress.asks.values()]
        outcome = RunFinishedInterruptOutcome(interrupts=interrupts)
        return RunFinishedEvent(**names, outcome=outcome)
    if progress.is_withdrawn or (progress.rested in STOPPED and not progress.is_answered):
        return RunFinishedEvent(**names, outcome=RunFinishedCancelledOutcome())
    if progress.failure is not None:
        text = progress.failure.get("message", "the turn failed")
        return RunErrorEvent(message=text, code=progress.failure.get("code") or "turn-failed")
    if not progress.is_answered and progress.rested not in {None, "idle"}:
        text = progress.detail or f"The session rests: {progress.rested}"
        return RunErrorEvent(message=text, code=progress.rested)
    usage = TokenUsage(
        input_tokens=progress.tokens["input"], output_tokens=progress.tokens["output"]
    )
    return RunFinishedEvent(
        **names,
        outcome=RunFinishedSuccessOutcome(),
        result=(progress.output or {}).get("value"),
        usage=[usage],
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
