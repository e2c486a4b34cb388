"""A conversation in the same words for every protocol, and the request that it makes."""

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from fairlead_cli.sim.script import SimRequest
from fairlead_llm.content import CONTINUE_TEXT
from fairlead_session.instructions.prompt_texts import COMPLAINT

_UPDATE = re.compile(r"<system-update>\n.*?\n</system-update>\n?", re.DOTALL)


class ConversationMessage(NamedTuple):
    """One message. `calls` counts the tool calls in an assistant's message."""

    role: Literal["system", "user", "assistant", "tool"]
    text: str = ""
    calls: int = 0


def build_request(
    messages: Sequence[ConversationMessage],
    *,
    model: str,
    stream: bool,
    include_usage: bool = True,
) -> SimRequest:
    """The request that a conversation makes."""
    user_index, user_text = _last_user_message(messages)
    later = messages[user_index + 1 :]
    tool_texts = [message.text for message in later if message.role == "tool"]
    return SimRequest(
        model=model,
        user_text=user_text,
        rounds=_count_rounds(later) + _count_complaints(later),
        tool_text=tool_texts[-1] if tool_texts else "",
        stream=stream,
        include_usage=include_usage,
        prompt_length=sum(len(message.text) for message in messages),
        full_text="\n".join(message.text for message in messages),
    )


def text_of(content: object, *kinds: str) -> str:
    """The text of content that is a string or a list of parts; `kinds` selects types of parts."""
    if isinstance(content, list):
        parts = (part for part in content if isinstance(part, dict))
        texts = (part.get("text") for part in parts if not kinds or part.get("type") in kinds)
        return "\n".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""


def _count_rounds(messages: Sequence[ConversationMessage]) -> int:
    """Count tool rounds. Adjacent calls are one round: some protocols send each as its own item."""
    rounds, in_round = 0, False
    for message in messages:
        if message.role == "assistant" and message.calls:
            rounds += not in_round
        in_round = message.role == "assistant" and (in_round or bool(message.calls))
    return rounds


def _count_complaints(messages: Sequence[ConversationMessage]) -> int:
    """Count answers that were sent back because they do not fit their schema."""
    told = (message.text for message in messages if message.role in {"system", "user"})
    return sum(text.count(COMPLAINT) for text in told)


def _last_user_message(messages: Sequence[ConversationMessage]) -> tuple[int, str]:
    """Index and text of the last user message that a person wrote.

    System updates and media of tools also come with the user's role: they are skipped.
    """
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].role == "user":
            text = _UPDATE.sub("", messages[index].text).strip()
            if text and text != CONTINUE_TEXT:
                return index, text
    return -1, ""
