"""The answer of a transform: the parts of the request that it changes. Absent parts stay."""

from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints

from fairlead_schema.json_depth import DEPTH_MAX, is_too_deep
from fairlead_schema.model import Model

SYSTEM_PARTS_MAX: Final = 64
MESSAGES_MAX: Final = 20_000
HEADERS_MAX: Final = 64
STOPS_MAX: Final = 16


def _require_shallow(value: object) -> object:
    if is_too_deep(value):
        raise ValueError(f"nested deeper than {DEPTH_MAX} levels")
    return value


AnyJson: TypeAlias = Annotated[Any, AfterValidator(_require_shallow)]


class _Strict(Model):
    """A field that nobody knows is a mistake of the transform: it is refused, not ignored."""

    model_config = ConfigDict(extra="forbid")


class RequestText(_Strict):
    type: Literal["text"]
    text: str


class RequestFile(_Strict):
    type: Literal["file"]
    uri: str
    mime: str
    name: str | None = None


class RequestReasoning(_Strict):
    type: Literal["reasoning"]
    text: str


class RequestCall(_Strict):
    type: Literal["call"]
    call_id: str
    name: str
    input: AnyJson = None
    executed: bool = False


class RequestResult(_Strict):
    type: Literal["result"]
    call_id: str
    name: str
    kind: Literal["text", "json", "error", "content"]
    value: AnyJson = None


RequestBlock: TypeAlias = Annotated[
    RequestText | RequestFile | RequestReasoning | RequestCall | RequestResult,
    Field(discriminator="type"),
]


class RequestMessage(_Strict):
    """One message of a request. A tool message has exactly one result."""

    role: Literal["user", "assistant", "tool", "system"]
    content: tuple[RequestBlock, ...]


class RequestParameters(_Strict):
    """Generation controls, and fields of the provider's body. A null removes a value."""

    max_tokens: Annotated[int, Field(gt=0)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    stop: Annotated[tuple[str, ...], Field(max_length=STOPS_MAX)] | None = None
    options: dict[str, AnyJson] | None = None
    """These keys are laid over the options of the model; a null removes a key."""


HeaderName: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$")
]
HeaderValue: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^[\x21-\x7e]([\x20-\x7e\t]*[\x21-\x7e])?$", max_length=8192)
]


class RequestChange(_Strict):
    """What a transform changes. A part that is absent stays as it is."""

    system: Annotated[tuple[str, ...], Field(max_length=SYSTEM_PARTS_MAX)] | None = None
    messages: (
        Annotated[tuple[RequestMessage, ...], Field(min_length=1, max_length=MESSAGES_MAX)] | None
    ) = None
    parameters: RequestParameters | None = None
    headers: (
        Annotated[dict[HeaderName, HeaderValue | None], Field(max_length=HEADERS_MAX)] | None
    ) = None
    """Headers to set; a null removes a header that an earlier transform set."""
