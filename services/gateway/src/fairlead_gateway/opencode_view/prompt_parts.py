"""The parts of a prompt from the terminal client, joined into one prompt."""

from typing import Any, Literal

from pydantic import ConfigDict

from fairlead_gateway.opencode_view.present_fields import present
from fairlead_schema.errors import InvalidRequest
from fairlead_schema.model import Model, wire_name
from fairlead_schema.prompt import AgentMention, FileInput, PromptInput, TextSpan


class PartInput(Model):
    """A text, a file or a mention of an agent."""

    model_config = ConfigDict(frozen=True, alias_generator=wire_name, populate_by_name=True)

    type: Literal["text", "file", "agent", "subtask"]
    text: str = ""
    synthetic: bool | None = None
    url: str = ""
    filename: str | None = None
    name: str = ""
    source: dict[str, Any] | None = None


def join_parts(parts: tuple[PartInput, ...], *, expand: bool) -> PromptInput:
    """One prompt: the texts that a person wrote, the files and the agents. Raises InvalidRequest."""
    texts = [part.text for part in parts if part.type == "text" and not part.synthetic]
    files = tuple(_file(part) for part in parts if part.type == "file")
    agents = tuple(_agent(part) for part in parts if part.type == "agent")
    if not any(texts) and not files:
        raise InvalidRequest(
            "The prompt is empty: send a text or a file", kind="Body", field="parts"
        )
    expansion = None if expand else False
    fields = present(files=files or None, agents=agents or None, expand=expansion)
    return PromptInput(text="\n".join(texts), **fields)


def _file(part: PartInput) -> FileInput:
    if not part.url:
        raise InvalidRequest("A file needs a url", kind="Body", field="parts.url")
    text = (part.source or {}).get("text")
    return FileInput(uri=part.url, **present(name=part.filename, source=_span(text)))


def _agent(part: PartInput) -> AgentMention:
    return AgentMention(name=part.name, **present(source=_span(part.source)))


def _span(source: object) -> TextSpan | None:
    match source:
        case {"start": int(start), "end": int(end), "value": str(value)}:
            return TextSpan(start=start, end=end, text=value)
        case _:
            return None
