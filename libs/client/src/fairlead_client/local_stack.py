"""Finds the gateway: from an argument, else the environment, else the stack that runs on this machine."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import SplitResult, urlsplit

from fairlead_client.credentials import TokenSource
from fairlead_client.errors import AddressInvalid

DEFAULT_URL: Final = "http://127.0.0.1:8420"
STATE: Final = Path(".fairlead")
_SCHEMES: Final = frozenset({"http", "https"})


class Gateway(NamedTuple):
    """The address of a gateway, and the token for it."""

    url: str
    token: TokenSource | None


def find_gateway(
    url: str | None,
    token: TokenSource | None,
    *,
    state: Path = STATE,
    environment: Mapping[str, str] = os.environ,
) -> Gateway:
    """The gateway to use; nobody has checked its address. The key of the local stack goes to that stack and to no other address."""
    local = local_url(state)
    address = (url or environment.get("FAIRLEAD_HTTP") or local or DEFAULT_URL).strip().rstrip("/")
    token = token or environment.get("FAIRLEAD_TOKEN") or None
    if token is None and local is not None and address == local:
        key = state / "token"
        token = key if key.exists() else None
    return Gateway(address, token)


def check_address(url: str) -> str:
    """The address of a gateway, to which paths are added. Raises AddressInvalid."""
    try:
        parts = urlsplit(url)
        reason = _flaw(parts)
    except ValueError as error:
        raise AddressInvalid(url, str(error)) from error
    if reason is not None:
        raise AddressInvalid(url, reason)
    return url


def _flaw(parts: SplitResult) -> str | None:
    """Why nobody can connect to an address; None if somebody can. Raises ValueError."""
    if parts.scheme not in _SCHEMES:
        return "it does not begin with http:// or https://"
    if not parts.hostname:
        return "it names no host"
    if parts.port == 0:
        return "it has the port 0"
    if parts.query or parts.fragment:
        return "paths are added to it, so it has no ? and no #"
    return None if parts.geturl().isprintable() else "it holds a control character"


def local_url(state: Path) -> str | None:
    """The address of the stack that runs on this state; None if none does."""
    address = read_run_file(state).get("http")
    return str(address).rstrip("/") if address else None


def read_run_file(state: Path) -> dict[str, Any]:
    """What a running stack says of itself; empty if none runs. A dead stack leaves its file behind."""
    if not _is_locked(state / "lock"):
        return {}
    try:
        record = json.loads((state / "run.json").read_text())
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def _is_locked(path: Path) -> bool:
    """Whether a process holds the lock of the state directory."""
    try:
        import fcntl  # noqa: PLC0415 - a local stack needs it too, and it is not everywhere
    except ImportError:
        return False
    try:
        with path.open("r") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
