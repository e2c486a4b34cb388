"""What any protocol's conversation says, in neutral words."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from fairlead_cli.sim.script import Ask
from fairlead_llm.content import GO_ON

_UPDATE = re.compile(r"<system-update>\n.*?\n</system-update>\n?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Line:
    """One thing said. `calls` counts the tool calls that an assistant asked for in it."""

    role: Literal["system", "user", "assistant", "tool"]
    text: str = ""
    calls: int = 0


def heard(lines: Sequence[Line], *, model: str, stream: bool, include_usage: bool = True) -> Ask:
    """The request that a conversation makes."""
    at, said = _last_user(lines)
    after = lines[at + 1 :]
    tools = [line.text for line in after if line.role == "tool"]
    return Ask(
        model=model,
        said=said,
        rounds=_rounds(after),
        tool_said=tools[-1] if tools else "",
        stream=stream,
        include_usage=include_usage,
        prompt_length=sum(len(line.text) for line in lines),
        heard="\n".join(line.text for line in lines),
    )


def text_of(content: object, *kinds: str) -> str:
    """The text of content that is a string or a list of parts; of parts with these types only."""
    if isinstance(content, list):
        parts = (part for part in content if isinstance(part, dict))
        told = (part.get("text") for part in parts if not kinds or part.get("type") in kinds)
        return "\n".join(text for text in told if isinstance(text, str))
    return content if isinstance(content, str) else ""


def _rounds(lines: Sequence[Line]) -> int:
    """Calls that nothing separates are one round, on protocols where each is an item of its own."""
    rounds, calling = 0, False
    for line in lines:
        if line.role == "assistant" and line.calls:
            rounds += not calling
        calling = line.role == "assistant" and (calling or bool(line.calls))
    return rounds


def _last_user(lines: Sequence[Line]) -> tuple[int, str]:
    """Where the user last spoke. System updates and tools' media come as user messages too."""
    for at in range(len(lines) - 1, -1, -1):
        if lines[at].role == "user":
            said = _UPDATE.sub("", lines[at].text).strip()
            if said and said != GO_ON:
                return at, said
    return -1, ""
