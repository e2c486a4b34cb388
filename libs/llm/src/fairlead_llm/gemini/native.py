"""What a canonical part remembers of the Gemini part it came from.

A signature must go back on the very part that bore it. Text has no metadata, so a signed text is
followed by reasoning without text that holds its signature; a part without a canonical form is such
reasoning that holds the part itself.
"""

from typing import Any, TypeAlias

from fairlead_schema.provider.events import ProviderEvent, ReasoningEnd, ReasoningStart

Part: TypeAlias = dict[str, Any]
Metadata: TypeAlias = dict[str, Any]

SIGNATURE = "thoughtSignature"
TEXT_SIGNATURE = "textSignature"
# Calls and results of tools that the provider runs itself, by the name of their part.
HOSTED_CALLS = ("executableCode", "toolCall")
HOSTED_RESULTS = ("codeExecutionResult", "toolResponse")

_NAME = "google"


def noted(**fields: object) -> Metadata | None:
    """Metadata that only this protocol reads; nothing to say is no metadata."""
    said = {name: value for name, value in fields.items() if value is not None}
    return {_NAME: said} if said else None


def of(metadata: Metadata | None) -> Metadata:
    """What this protocol noted."""
    held = (metadata or {}).get(_NAME)
    return held if isinstance(held, dict) else {}


def signed(part: Part, metadata: Metadata | None) -> Part:
    """The part with the signature that it bore."""
    signature = of(metadata).get(SIGNATURE)
    return part if signature is None else part | {SIGNATURE: signature}


def silent(id_: str, **fields: object) -> tuple[ProviderEvent, ...]:
    """A part that says nothing to a reader but must be told again."""
    return ReasoningStart(id_), ReasoningEnd(id_, noted(**fields))
