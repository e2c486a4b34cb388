"""The environment of commands: named variables alone, so that no secret of the service is in it."""

from collections.abc import Iterable, Mapping
from typing import Final

INHERITED: Final = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TZ", "TMPDIR"),
        *("LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_COLLATE", "LC_MESSAGES", "LC_TIME"),
    }
)
DEFAULTS: Final = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/",
    "LANG": "C.UTF-8",
    "TERM": "dumb",
}


def command_environment(own: Mapping[str, str], more: Iterable[str] = ()) -> dict[str, str]:
    """What a command is given of the service's own environment."""
    names = INHERITED | set(more)
    return DEFAULTS | {name: value for name, value in own.items() if name in names}
