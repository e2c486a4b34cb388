"""The title of a session that nobody has named: the first words of its first prompt."""

import re
from typing import Final

from fairlead_schema.prompt import Prompt

TITLE_LENGTH_MAX: Final = 60
_LOOKED_AT: Final = 10 * TITLE_LENGTH_MAX
_UNNAMED: Final = re.compile(r"New session - \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def unnamed_title(created_at: str) -> str:
    """The title of a new session, with the time of its creation in ISO form and UTC."""
    return f"New session - {created_at}"


def title_after(title: str, prompt: Prompt) -> str:
    """The title once the model has been given a prompt. A title that somebody chose stays."""
    if _UNNAMED.fullmatch(title) is None:
        return title
    return first_words(prompt.text) or title


def first_words(text: str) -> str:
    """As many whole words as a title holds. A longer first word is cut."""
    words = " ".join(text[:_LOOKED_AT].split())
    line = "".join(char for char in words if char.isprintable())
    if len(line) <= TITLE_LENGTH_MAX:
        return line
    cut = line[: TITLE_LENGTH_MAX - 1]
    whole = cut if line[len(cut)] == " " else cut.rpartition(" ")[0]
    return f"{(whole or cut).rstrip()}…"
