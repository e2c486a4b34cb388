"""The prompts that a person sent before, and a walk through them."""

from collections.abc import Iterable
from typing import Final

PROMPTS_MAX: Final = 500


class PromptHistory:
    """Goes back and forth through earlier prompts, and keeps what was being typed."""

    def __init__(self, prompts: Iterable[str] = ()) -> None:
        self._prompts = [prompt for prompt in prompts if prompt.strip()][-PROMPTS_MAX:]
        self._at = len(self._prompts)
        self._draft = ""

    def add(self, prompt: str) -> None:
        """Remember a prompt, unless it repeats the last one, and end the walk."""
        if prompt.strip() and prompt not in self._prompts[-1:]:
            self._prompts = [*self._prompts, prompt][-PROMPTS_MAX:]
        self._at, self._draft = len(self._prompts), ""

    def back(self, typed: str) -> str | None:
        """The prompt before; None at the first one."""
        if self._at == 0:
            return None
        if self._at == len(self._prompts):
            self._draft = typed
        self._at -= 1
        return self._prompts[self._at]

    def forth(self) -> str | None:
        """The prompt after, and at the end what was being typed; None behind the end."""
        if self._at >= len(self._prompts):
            return None
        self._at += 1
        return self._draft if self._at == len(self._prompts) else self._prompts[self._at]
