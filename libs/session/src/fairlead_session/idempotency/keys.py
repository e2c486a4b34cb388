"""Idempotency keys: the same command under the same key is decided once, and answered alike.

A key counts for one principal, one session and one verb.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple

from fairlead_schema.events import CommandAnswered, InterruptRequested, SessionEvent
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.ids import SessionId
from fairlead_session.state.answers import KeptAnswer
from fairlead_session.state.session import Session


class CommandKey(NamedTuple):
    """The key of a command and the command itself, both as hashes."""

    key: str
    body: str


@dataclass(frozen=True, slots=True)
class KeyUsedOtherwise:
    """The caller used the key for another command of this verb."""


def command_key(
    principal: PrincipalName | None,
    session_id: SessionId,
    verb: str,
    key: str,
    body: Mapping[str, Any],
) -> CommandKey:
    """The hashes of a command. `body` has the fields that the caller named, as JSON."""
    named = json.dumps([principal, session_id, verb, key])
    return CommandKey(_hash(named), _hash(json.dumps(body, sort_keys=True)))


def find_answer(session: Session, command: CommandKey) -> KeptAnswer | KeyUsedOtherwise | None:
    """The answer that the command got before; None if its key is new."""
    kept = session.answers.get(command.key)
    if kept is None:
        return None
    return kept if kept.body == command.body else KeyUsedOtherwise()


def with_answer(command: CommandKey, events: tuple[SessionEvent, ...]) -> tuple[SessionEvent, ...]:
    """The events of a command, and behind them the note that it is decided.

    A command without events is noted too: repeated later it might find something to do.
    """
    interrupts = any(isinstance(event, InterruptRequested) for event in events)
    answered = CommandAnswered(
        key=command.key, body=command.body, interrupts=True if interrupts else None
    )
    return (*events, answered)


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:32]
