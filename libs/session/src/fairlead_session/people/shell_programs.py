"""Words of the shell's grammar, and programs that run the command in their arguments.

No list of such programs is complete. It holds those that commands use every day.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


RESERVED: Final = _names("! { } if then elif else fi do done while until for")
GRAMMAR: Final = _names("case esac select function coproc")
TESTS: Final = frozenset({"[", "[["})

_WRAPPERS: Final = _names(
    "command exec builtin time nohup env sudo doas nice ionice stdbuf timeout setsid xargs chroot"
    " busybox unshare nsenter flock script watch strace ltrace parallel taskset chrt setarch prlimit"
    " numactl runuser systemd-run fakeroot unbuffer noglob nocorrect repeat -"
)
# The arguments or the input of these are code, so that no text shows what runs.
_INTERPRETERS: Final = _names(
    "eval source . trap alias su sh bash rbash dash ash zsh ksh mksh yash fish csh tcsh pwsh"
)
# The words of a search behind which a command stands.
_SEARCHES: Final = _names("find gfind fd fdfind")
_EXECUTES: Final = _names("-exec -execdir -ok -okdir -x -X --exec --exec-batch")
# An option of `env` that splits its value into a command.
_SPLITS: Final = re.compile(r"-[A-Za-z0-9]*S|--s")
# How many words behind a wrapper may begin its command, besides the words right behind an option,
# which may be its value.
_WRAPPED_WORDS: Final = 4


def is_hidden_program(name: str, arguments: Sequence[str]) -> bool:
    """Whether no text shows what a program with these arguments runs."""
    if name in _INTERPRETERS:
        return True
    return name == "env" and any(map(_SPLITS.match, arguments))


def command_starts(name: str, words: Sequence[str], start: int) -> tuple[int, ...]:
    """Where a command may begin that a program runs, among its arguments from a word on."""
    if name in _SEARCHES:
        after = (index + 1 for index in range(start, len(words)) if words[index] in _EXECUTES)
        return tuple(index for index in after if index < len(words))
    return tuple(_wrapped_starts(words, start)) if name in _WRAPPERS else ()


def _wrapped_starts(words: Sequence[str], start: int) -> Iterator[int]:
    left, is_value = _WRAPPED_WORDS, False
    for index in range(start, len(words)):
        is_option = words[index].startswith("-") and len(words[index]) > 1
        if not is_option:
            yield index
            left -= not is_value
        if left == 0:
            return
        is_value = is_option
