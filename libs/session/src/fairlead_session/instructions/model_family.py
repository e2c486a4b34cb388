"""The family of a model: models of one family are trained to work in the same way."""

import re
from typing import Final, Literal, TypeAlias

ModelFamily: TypeAlias = Literal["claude", "gpt", "gemini", "other"]

_NAMES: Final[tuple[tuple[ModelFamily, re.Pattern[str]], ...]] = (
    ("claude", re.compile(r"claude")),
    ("gpt", re.compile(r"\bgpt|codex|(^|/)o\d")),
    ("gemini", re.compile(r"gemini")),
)
# Most servers that speak this protocol serve models of any maker.
_PROTOCOLS: Final[dict[str, ModelFamily]] = {
    "anthropic-messages": "claude",
    "openai-responses": "gpt",
    "gemini": "gemini",
}


def model_family(model: str, *, configured: str | None, protocol: str) -> ModelFamily:
    """The family by the configured name, else by the name of the model, else by the protocol."""
    if configured is not None:
        return _by_name(configured) or "other"
    return _by_name(model) or _PROTOCOLS.get(protocol, "other")


def _by_name(name: str) -> ModelFamily | None:
    lowered = name.lower()
    return next((family for family, pattern in _NAMES if pattern.search(lowered)), None)
