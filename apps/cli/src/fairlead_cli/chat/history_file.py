"""Keeps the prompts of a person from one run to the next, readable for that person alone."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from fairlead_cli.chat.view.prompt_history import PROMPTS_MAX

_BYTES_READ: Final = 1024 * 1024


def history_path(environment: Mapping[str, str] = os.environ) -> Path:
    """Where the prompts are kept."""
    state = environment.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(state).expanduser() / "fairlead" / "chat-history.jsonl"


def load_prompts(path: Path) -> list[str]:
    """The last prompts, oldest first. A file that cannot be read has none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _BYTES_READ))
            lines = file.read().splitlines()
    except OSError:
        return []
    return [prompt for line in lines[-PROMPTS_MAX:] if (prompt := _prompt(line))]


def save_prompt(path: Path, prompt: str) -> None:
    """Add one prompt. If that is impossible, only the convenience is lost."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        opened = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(opened, "a") as file:
            file.write(json.dumps(prompt) + "\n")
    except OSError:
        return


def _prompt(line: bytes) -> str:
    try:
        value = json.loads(line)
    except ValueError:
        return ""
    return value if isinstance(value, str) else ""
