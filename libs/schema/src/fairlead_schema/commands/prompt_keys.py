"""Keys of a prompt that nobody reads: those of other clients are ignored, mistakes are refused.

Clients may send more than Fairlead knows, so an unknown key does no harm. But a caller that misspells an
option, or puts it in the wrong place, must not believe that the option counts.
"""

from collections.abc import Set as AbstractSet
from difflib import get_close_matches
from typing import Final

_SIMILAR: Final = 0.8
OPTIONS: Final = frozenset({"system", "model", "agent", "tools", "schema"})
_MEANT: Final = {
    "format": "schema",
    "responseformat": "schema",
    "response_format": "schema",
    "jsonschema": "schema",
    "json_schema": "schema",
    "outputschema": "schema",
    "output_schema": "schema",
    "instructions": "system",
    "systemprompt": "system",
    "system_prompt": "system",
    "allowedtools": "tools",
    "allowed_tools": "tools",
    "modelid": "model",
    "model_id": "model",
}
_IGNORED: Final = frozenset(
    {"messageID", "metadata", "noReply", "parts", "references", "sessionID", "variant"}
)
"""Keys that clients of the same wire format send. They have no meaning here and never had one."""


def refuse_mistaken_keys(value: object, known: AbstractSet[str], *, inside: bool) -> object:
    """Refuse a key that is probably one of ours. `inside` is whether the value is the prompt itself.

    Raises ValueError with the key that the caller meant.
    """
    if not isinstance(value, dict) or value.keys() <= known:
        return value
    for key in value.keys() - known - _IGNORED:
        meant = _meant(str(key), known | OPTIONS)
        if meant is not None:
            place = "" if inside or meant in known else "prompt."
            raise ValueError(f"the key {key!r} is not known: {place}{meant} is meant")
    return value


def _meant(key: str, names: AbstractSet[str]) -> str | None:
    if key.lower() in _MEANT:
        return _MEANT[key.lower()]
    by_lower = {name.lower(): name for name in names}
    similar = get_close_matches(key.lower(), by_lower, n=1, cutoff=_SIMILAR)
    return by_lower[similar[0]] if similar else None
