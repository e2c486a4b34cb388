"""The key of a stack on this machine: made once, in a file that only its owner reads."""

from typing import Final

from fairlead_cli.embedded.state_directory import StateDirectory
from fairlead_cli.errors import StateUnusable
from fairlead_gateway.console.sealed_cookie import Sealer, new_cookie_key
from fairlead_schema.errors import Unauthorized
from fairlead_service.config.configuration import ConfigError
from fairlead_service.identity.key_file import add_key, load_keys, write_secret
from fairlead_service.identity.keys import KeyRing, mint_key
from fairlead_service.identity.watched_file import FileUnusable
from fairlead_service.ids import now_ms

TICKET_MS: Final = 15 * 60 * 1000
"""How long the link to the console signs in."""


def ensure_key(state: StateDirectory) -> str:
    """The administrator's key of the stack. A key that does not count any more gets a successor.

    Raises StateUnusable.
    """
    try:
        key = state.token.read_text().strip() if state.token.exists() else ""
        entries = load_keys(state.keys).keys
        try:
            KeyRing(entries).principal(key, now_ms=now_ms())
        except Unauthorized:
            key, entry = mint_key(["admin"], name="the owner of this stack")
            add_key(state.keys, entry)
            write_secret(state.token, f"{key}\n")
    except (OSError, FileUnusable) as error:
        raise StateUnusable(f"{error}: correct or remove the file") from error
    return key


def ensure_cookie_key(state: StateDirectory) -> None:
    """Write the key that seals the cookies of the console, if there is none. Raises StateUnusable."""
    if not state.cookie_key.exists():
        try:
            write_secret(state.cookie_key, f"{new_cookie_key()}\n")
        except OSError as error:
            raise StateUnusable(f"{error}: choose a writable directory with --state") from error


def console_link(state: StateDirectory, http: str, token: str | None) -> str:
    """The address of the console. With a key of the owner, the link signs in once.

    The ticket is in the part of the address that no browser sends, so that no log shows it.
    """
    if token is None:
        return f"{http}/"
    try:
        sealer = Sealer.load(state.cookie_key)
    except ConfigError:
        return f"{http}/"
    return f"{http}/login#ticket={sealer.seal('ticket', token, until=now_ms() + TICKET_MS)}"
