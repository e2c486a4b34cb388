"""Generates the synchronous client from the asynchronous one: `make client`.

Written by hand on both sides are `__init__`, `runtime`, which holds what differs, and `nats_connection`: nats-py
is asynchronous alone, so the synchronous side has a `loop_thread` for it.
"""

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).parents[1] / "src/fairlead_client"
_FIXED: Final = "I,F401,UP028"
BY_HAND: Final = frozenset({"__init__.py", "runtime.py", "nats_connection.py", "loop_thread.py"})
_WORDS: Final = {
    "AsyncGenerator": "Generator",
    "Awaitable": "",
    "StopAsyncIteration": "StopIteration",
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "aclose": "close",
    "aclosing": "closing",
    "aiter_bytes": "iter_bytes",
    "anext": "next",
    "aread": "read",
    "async_client": "sync_client",
    "asynccontextmanager": "contextmanager",
}
_RULES: Final = (
    (re.compile(r"AsyncGenerator\[(.+?), None\]"), r"Generator[\1, None, None]"),
    (re.compile(r"\bAwaitable\[((?:[^\[\]]|\[[^\[\]]*\])+)\]"), r"\1"),
    (re.compile(r", Awaitable\b|\bAwaitable, "), ""),
    (re.compile(r"\b(?:async|await) "), ""),
    (re.compile(r"\bhttpx\.AsyncClient\b"), "httpx.Client"),
    (re.compile(r"\bAsync(?=[A-Z])(?!Generator)"), ""),
    (re.compile(rf"\b(?:{'|'.join(_WORDS)})\b"), lambda match: _WORDS[match[0]]),
)


def generate() -> Mapping[str, str]:
    """The text of every generated module, by its name."""
    return {
        path.name: _format(_translate(path))
        for path in sorted((PACKAGE / "async_client").glob("*.py"))
        if path.name not in BY_HAND
    }


def main() -> None:
    """Write every generated module."""
    for name, text in generate().items():
        (PACKAGE / "sync_client" / name).write_text(text)


def _translate(path: Path) -> str:
    text = path.read_text()
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return f"# Generated from async_client/{path.name} by `make client`: change that file.\n{text}"


def _format(text: str) -> str:
    """The text as `make format` leaves it, with its imports in order."""
    ruff = Path(sys.executable).parent / "ruff"
    stdin = ["--stdin-filename", str(PACKAGE / "sync_client/generated.py"), "-"]
    for command in (
        ["check", "--quiet", "--fix-only", "--unsafe-fixes", f"--select={_FIXED}", *stdin],
        ["format", "--quiet", *stdin],
    ):
        text = subprocess.run(
            [ruff, *command], input=text, capture_output=True, text=True, check=True
        ).stdout
    return text


if __name__ == "__main__":
    main()
