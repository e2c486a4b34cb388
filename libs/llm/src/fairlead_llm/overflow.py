"""Recognises the provider texts that mean: the prompt does not fit the model's window (G-37)."""

import re

CODES = frozenset({"context_length_exceeded", "model_context_window_exceeded", "request_too_large"})

_PHRASES = (
    r"prompt is too long",
    r"request_too_large",
    r"input is too long for requested model",
    r"exceeds the context window",
    r"exceeds (?:the )?(?:model'?s )?maximum context length(?: of [\d,]+ tokens?|\s*\([\d,]+\))",
    r"input token count.*exceeds the maximum",
    r"tokens in request more than max tokens allowed",
    r"maximum prompt length is \d+",
    r"reduce the length of the messages",
    r"maximum context length is \d+ tokens",
    r"exceeds (?:the )?maximum allowed input length of [\d,]+ tokens?",
    r"input \(\d+ tokens\) is longer than the model'?s context length \(\d+ tokens\)",
    r"exceeds the limit of \d+",
    r"exceeds the available context size",
    r"greater than the context length",
    r"context window exceeds limit",
    r"exceeded model token limit",
    r"context[_ ]length[_ ]exceeded",
    r"request entity too large",
    r"context length is only \d+ tokens",
    r"input length.*exceeds.*context length",
    r"prompt too long; exceeded (?:max )?context length",
    r"too large for model with \d+ maximum context length",
    r"prompt has [\d,]+ tokens?, but the configured context size is [\d,]+ tokens?",
    r"model_context_window_exceeded",
    r"too many tokens",
    r"token limit exceeded",
    r"^4(?:00|13)\s*(?:status code)?\s*\(no body\)",
)
_OVERFLOW = re.compile("|".join(_PHRASES), re.IGNORECASE)
# One request exceeds what a minute or a day allows: it can never pass as it stands.
_OVER_RATE = re.compile(
    r"request too large for model.*tokens per (?:minute|day)", re.IGNORECASE | re.DOTALL
)
_THROTTLING = re.compile(
    r"^(?:throttling error|service unavailable):|rate limit|too many requests", re.IGNORECASE
)


def exceeds_rate_alone(text: str) -> bool:
    """Whether a single request is larger than the provider's rate of tokens. No pause helps."""
    return _OVER_RATE.search(text) is not None


def mentions_overflow(text: str) -> bool:
    """Whether the text reports an overflow. A text about throttling never does."""
    return _THROTTLING.search(text) is None and _OVERFLOW.search(text) is not None
