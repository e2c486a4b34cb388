"""The span of one request to a provider, by OpenTelemetry's conventions for generative AI."""

from dataclasses import dataclass, field
from time import monotonic
from typing import Final

from pydantic_core import to_json

from fairlead_runner.turn.model_target import ModelTarget
from fairlead_schema.provider.events import (
    ProviderEvent,
    ProviderFailure,
    ProviderUsage,
    StepFinish,
    TextChunk,
)
from fairlead_schema.provider.request import ModelRequest
from fairlead_service.traces import names
from fairlead_service.traces.tracer import TraceSpan, open_span, records_content

TEXT_LENGTH_MAX: Final = 16_384


def open_chat_span(target: ModelTarget, request: ModelRequest) -> TraceSpan:
    """The span of a request. It holds the messages only if the operator asked for content."""
    model = target.identity.model
    span = open_span(
        f"{names.CHAT} {model.id}",
        "client",
        attributes={
            names.OPERATION: "chat",
            names.PROVIDER: model.provider_id,
            names.REQUEST_MODEL: model.id,
            names.RESPONSE_MODEL: request.model,
            names.AGENT: target.agent,
        },
    )
    if span.live and records_content():
        span.set({names.INPUT_MESSAGES: _encode(request)})
    return span


@dataclass(slots=True)
class ChatRecord:
    """What the span of a request says at its end."""

    span: TraceSpan
    _began: float = field(default_factory=monotonic)
    _texts: list[str] = field(default_factory=list)
    _started: bool = False

    def receive(self, event: ProviderEvent) -> None:
        """Note an event of the stream."""
        if not self.span.live:
            return
        if not self._started:
            self._started = True
            self.span.set({names.FIRST_CHUNK_S: round(monotonic() - self._began, 6)})
        match event:
            case ProviderFailure(kind=kind, status=status, retry_after_s=retry_after_s):
                self.span.set({names.STATUS: status, names.RETRY_AFTER_S: retry_after_s})
                self.span.fail(kind)
            case StepFinish():
                self._finish(event)
            case TextChunk(text=text) if records_content():
                self._texts.append(text)
            case _:
                pass

    def _finish(self, finish: StepFinish) -> None:
        usage = finish.usage
        self.span.set(
            {
                names.FINISH_REASONS: [finish.finish],
                names.INPUT_TOKENS: _input_tokens(usage),
                names.OUTPUT_TOKENS: usage.output,
                names.CACHE_READ_TOKENS: usage.cache_read,
                names.CACHE_WRITE_TOKENS: usage.cache_write,
            }
        )
        if self._texts:
            text = "".join(self._texts)[:TEXT_LENGTH_MAX]
            said = [{"role": "assistant", "parts": [{"type": "text", "content": text}]}]
            self.span.set({names.OUTPUT_MESSAGES: to_json(said).decode()})


def _input_tokens(usage: ProviderUsage) -> int | None:
    """All tokens of the prompt: the conventions count those of the cache among them."""
    if usage.input is None:
        return None
    return usage.input + (usage.cache_read or 0) + (usage.cache_write or 0)


def _encode(request: ModelRequest) -> str:
    """The newest messages of a request that fit: the older ones stand in the spans before."""
    kept: list[str] = []
    room = TEXT_LENGTH_MAX
    for turn in reversed(request.turns):
        text = to_json(turn, serialize_unknown=True).decode()
        room -= len(text)
        if room < 0:
            break
        kept.append(text)
    return f"[{','.join(reversed(kept))}]"
