"""Applies the change of a transform to a request, after every rule about it has been checked."""

from dataclasses import replace
from typing import Final

from fairlead_schema.provider.request import Generation, ModelRequest
from fairlead_schema.transforms.answer import RequestChange, RequestParameters
from fairlead_schema.transforms.registration import RequestPart
from fairlead_session.transforms.document import RequestOrigin
from fairlead_session.transforms.messages import InvalidChange, apply_messages

OWN_OPTIONS: Final = frozenset(
    {
        "contents",
        "generationConfig",
        "input",
        "instructions",
        "max_completion_tokens",
        "max_output_tokens",
        "max_tokens",
        "messages",
        "model",
        "n",
        "previous_response_id",
        "prompt",
        "stream",
        "stream_options",
        "system",
        "systemInstruction",
        "system_instruction",
        "toolConfig",
        "tool_choice",
        "tools",
    }
)
"""Fields of a provider's body that Fairlead fills itself: prices, limits and the log depend on them."""
TRANSPORT_HEADERS: Final = frozenset(
    {
        "accept",
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "expect",
        "host",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)


def apply_change(
    request: ModelRequest,
    change: RequestChange,
    origin: RequestOrigin,
    *,
    parts: tuple[RequestPart, ...],
    trusted: bool,
) -> ModelRequest:
    """The request after a transform; the same object if nothing changed. Raises InvalidChange.

    A `trusted` transform is the operator's own: it may replace headers of the configuration.
    """
    for part in change.model_fields_set - set(parts):
        if getattr(change, part) is not None:
            raise InvalidChange(f"{part}: the transform did not declare this part")
    after = request
    if change.system is not None and change.system != request.system:
        after = replace(after, system=tuple(text for text in change.system if text))
    if change.messages is not None:
        turns = apply_messages(request.turns, change.messages)
        after = after if turns == request.turns else replace(after, turns=turns)
    if change.parameters is not None:
        after = _apply_parameters(after, change.parameters, origin)
    if change.headers:
        after = _apply_headers(after, change.headers, origin, trusted=trusted)
    return request if after == request else after


def _apply_parameters(
    request: ModelRequest, parameters: RequestParameters, origin: RequestOrigin
) -> ModelRequest:
    limit, wanted = origin.output_tokens_max, parameters.max_tokens
    if limit is not None and wanted is not None and wanted > limit:
        raise InvalidChange(f"parameters.maxTokens: the model gives at most {limit}")
    named = parameters.model_fields_set
    before = request.generation
    generation = Generation(
        max_tokens=wanted if "max_tokens" in named else before.max_tokens,
        temperature=parameters.temperature if "temperature" in named else before.temperature,
        top_p=parameters.top_p if "top_p" in named else before.top_p,
        stop=parameters.stop or () if "stop" in named else before.stop,
    )
    options = dict(request.options)
    for name, value in (parameters.options or {}).items():
        if name in request.options and request.options[name] == value:
            continue
        if name in OWN_OPTIONS:
            raise InvalidChange(f"parameters.options.{name}: Fairlead fills this field itself")
        options[name] = value
    options = {name: value for name, value in options.items() if value is not None}
    return replace(request, generation=generation, options=options)


def _apply_headers(
    request: ModelRequest,
    headers: dict[str, str | None],
    origin: RequestOrigin,
    *,
    trusted: bool,
) -> ModelRequest:
    merged, private = dict(request.headers), set(request.private_headers)
    for name, value in headers.items():
        low = name.lower()
        if low in TRANSPORT_HEADERS or low.startswith("proxy-"):
            raise InvalidChange(f"headers.{name}: it belongs to the transport")
        own = low in origin.headers or any(known.lower() == low for known in request.headers)
        if own and low not in private and not trusted:
            raise InvalidChange(f"headers.{name}: Fairlead or its configuration sets it")
        merged = {known: kept for known, kept in merged.items() if known.lower() != low}
        if value is not None:
            merged[name] = value
            private.add(low)
    return replace(request, headers=merged, private_headers=frozenset(private))
