"""Translates search patterns of ripgrep into Python's regular expressions.

A pattern that only one of the two understands is refused, so that a search means the same everywhere.
"""

import re
import warnings
from typing import Final

_POSIX: Final = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_NAMED: Final = re.compile(r"\[:(\^?)([a-z]+):\]")
_CODE: Final = re.compile(r"\\[xuU]\{([0-9A-Fa-f]{1,6})\}")
_GROUP: Final = re.compile(r"\(\?(?:P?<(?![=!])|[imsx-]*[:)])")


class BadPattern(Exception):
    """A pattern that cannot be searched for."""


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """The compiled pattern, for single lines. Raises BadPattern."""
    regex = ""
    at = 0
    within = False
    while at < len(pattern):
        piece, at, within = _piece(pattern, at, within=within)
        regex += piece
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return re.compile(regex)
    except (re.error, OverflowError, RecursionError) as error:
        raise BadPattern(str(error)) from error


def _piece(pattern: str, at: int, *, within: bool) -> tuple[str, int, bool]:
    """The next piece, where it ends, and whether a class is open after it."""
    char = pattern[at]
    if char == "\n":
        raise BadPattern("a line break cannot be searched for")
    if char == "\\":
        return *_escape(pattern, at), within
    if within:
        posix_class = _NAMED.match(pattern, at)
        if posix_class is not None and posix_class[2] in _POSIX and not posix_class[1]:
            return _POSIX[posix_class[2]], posix_class.end(), True
        return (r"\[" if char == "[" else char), at + 1, char != "]"
    if char == "[":
        # A bracket at the start of a class is a member of the class.
        start = at + 1 + (pattern[at + 1 : at + 2] == "^")
        member = pattern[start : start + 1] == "]"
        return pattern[at:start] + (r"\]" if member else ""), start + member, True
    if pattern.startswith("(?", at):
        group = _GROUP.match(pattern, at)
        if group is None:
            raise BadPattern("look-around and references are not supported")
        return group[0].replace("(?<", "(?P<"), group.end(), False
    return char, at + 1, False


def _escape(pattern: str, at: int) -> tuple[str, int]:
    code = _CODE.match(pattern, at)
    if code is not None:
        return re.escape(chr(min(int(code[1], 16), 0x10FFFF))), code.end()
    char = pattern[at + 1 : at + 2]
    if char.isdigit() or char in {"n", "p", "P", "Z", "k", "g"}:
        raise BadPattern(f"\\{char} is not supported")
    return (r"\Z" if char == "z" else pattern[at : at + 2]), at + 2
