"""Ids and names that the events of a run and the snapshot of a thread share. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

SHELL: Final = "bash"
"""The tool by which a person's own command is shown."""


def text_id(message_id: str, block_id: str) -> str:
    """The AG-UI message of one text of an answer."""
    return f"{message_id}.text.{block_id}"


def reasoning_id(message_id: str, block_id: str) -> str:
    """The AG-UI message of one piece of reasoning."""
    return f"{message_id}.reasoning.{block_id}"


def result_id(call_id: str) -> str:
    """The AG-UI message with the result of a call."""
    return f"{call_id}.result"


def model_name(model: Mapping[str, Any]) -> str:
    """A model as people write it: `provider/model`."""
    return f"{model['providerID']}/{model['id']}"


def output_text(content: Iterable[Mapping[str, Any]]) -> str:
    """The text of a call's output. Files in it are named."""
    texts = [
        item["text"] if item["type"] == "text" else f"[{item.get('name') or item['mime']}]"
        for item in content
    ]
    return "\n".join(texts)
