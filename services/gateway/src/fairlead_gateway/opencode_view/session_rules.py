"""Sessions in which nobody answers questions. `run` of the client asks for that, and would wait for ever."""

from collections.abc import Iterable, Mapping
from typing import Final

from fairlead_schema.model import InputModel
from fairlead_schema.session_values.metadata import MetadataValue
from fairlead_session.state.session import Session

NO_QUESTIONS: Final[Mapping[str, MetadataValue]] = {"opencode.question": "deny"}
"""The note in the metadata of a session. Any gateway reads it, also after a restart."""


class SessionRule(InputModel):
    """One rule that the client gives a new session. Those about questions count."""

    permission: str = ""
    pattern: str = "*"
    action: str = ""


def deny_questions(rules: Iterable[SessionRule]) -> bool:
    """Whether rules say that nobody answers questions."""
    return any((rule.permission, rule.action) == ("question", "deny") for rule in rules)


def denies_questions(session: Session) -> bool:
    """Whether the rules of a session said so when it was made."""
    profile = session.profile
    return profile is not None and NO_QUESTIONS.items() <= profile.metadata.items()
