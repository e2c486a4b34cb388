"""What crosses between the platform's account of NATS and another account.

The server replaces the reply of a request that crosses, so that an answer reaches only the account
that asked. Inside one account a client may name any subject as the reply, the log included.
"""

from dataclasses import dataclass
from typing import Final

from fairlead_eventlog.grants.permissions import API, Permissions

PLATFORM: Final = "FAIRLEAD"
"""The account of the services."""
ANSWERED_BY_ACCOUNT: Final = (f"{API}.STREAM.", f"{API}.CONSUMER.INFO.")
"""Every account answers these requests to JetStream by itself. A new name leads to the platform."""
READ_S_MAX: Final = 15
"""Longer than any read takes. A gateway reads so often that two minutes of reads are many."""


@dataclass(frozen=True, slots=True)
class Crossing:
    """A subject that clients of another account reach in the platform's account."""

    subject: str
    many_answers: bool = False
    """Whether one request may get several answers, as a pull does."""
    answer_s_max: int | None = None
    """How long the server remembers where several answers go; None for its default of two minutes."""

    @property
    def new_name(self) -> str | None:
        """The subject into which the server maps it in the other account; None if it stays as it is."""
        return new_name(self.subject)


@dataclass(frozen=True, slots=True)
class Crossings:
    """Everything that crosses between an account and the platform's."""

    requests: tuple[Crossing, ...]
    """What the account may ask of the platform."""
    broadcasts: tuple[str, ...]
    """What the account may hear of the platform."""
    served: tuple[str, ...] = ()
    """What the platform may ask of the account: application tools and context sources, or who is there."""


def new_name(subject: str) -> str | None:
    """The name of a request that an account would answer by itself; None for every other one."""
    if not subject.startswith(ANSWERED_BY_ACCOUNT):
        return None
    return f"{PLATFORM}.{subject.removeprefix('$')}"


def with_new_names(granted: Permissions) -> Permissions:
    """Grants from another account: the server compares the new name too."""
    return granted + Permissions(publish=tuple(filter(None, map(new_name, granted.publish))))


def crossings_of(granted: Permissions, served: tuple[str, ...]) -> Crossings:
    """What crosses for a service outside the platform's account: exactly its grants and what it serves."""
    return Crossings(
        requests=tuple(
            Crossing(subject, many_answers=True, answer_s_max=READ_S_MAX)
            if subject.startswith(f"{API}.DIRECT.GET.")
            else Crossing(subject)
            for subject in granted.publish
        ),
        broadcasts=granted.subscribe,
        served=served,
    )
