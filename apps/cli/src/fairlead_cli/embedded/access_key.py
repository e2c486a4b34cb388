"""The key of a stack on this machine: made once, in a file that only its owner reads."""

from fairlead_cli.embedded.state_directory import StateDirectory
from fairlead_cli.errors import StateUnusable
from fairlead_schema.errors import Unauthorized
from fairlead_service.identity.key_file import add_key, load_keys, write_secret
from fairlead_service.identity.keys import KeyRing, mint_key
from fairlead_service.identity.watched_file import FileUnusable
from fairlead_service.ids import now_ms


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
