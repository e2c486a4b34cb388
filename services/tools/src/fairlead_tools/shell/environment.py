"""The environment of commands: only named variables, so that it holds no secret of the service."""

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
    """The variables of a command: defaults, and the named ones of the service."""
    names = INHERITED | set(more)
    return DEFAULTS | {name: value for name, value in own.items() if name in names}
