"""Makes text from models, tools and files safe for a terminal."""

import re
from typing import Final

_ANSI: Final = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours and cursor moves
    r"|\x1b[\]PX^_].*?(?:\x1b\\|\x07|$)"  # titles, links and other strings
    r"|\x1b.?",
    re.DOTALL,
)
# Control characters would move the cursor; marks of direction would show another text than there is.
_UNSAFE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]"
)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_PLAIN: Final = re.compile("[\n\x20-\x7e]*")
TAB: Final = "    "


def clean(text: str) -> str:
    """The text without anything that a terminal would obey. Broken characters become `�`."""
    if _PLAIN.fullmatch(text):
        return text
    text = _ANSI.sub("", text.replace("\r\n", "\n"))
    text = "\n".join(_last_overwrite(line) for line in text.split("\n"))
    return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", _UNSAFE.sub("", text.replace("\t", TAB)))


def one_line(text: str, length: int = 72) -> str:
    """The text on one line of at most `length` characters."""
    line = " ".join(clean(text[: length * 4]).split())
    return line if len(line) <= length else f"{line[: max(0, length - 1)]}…"


def _last_overwrite(line: str) -> str:
    """What a line shows at its end, if a program wrote over it, as progress bars do."""
    return line.rstrip("\r").rpartition("\r")[2] if "\r" in line else line
