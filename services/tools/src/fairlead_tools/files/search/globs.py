"""Globs, compiled so that no pattern backtracks: matching takes time linear in the path.

`?` is one character and `*` any number of them, but no slash; `**` is any number of names;
`[a-z]`, `[!a-z]` and `{a,b}` are choices. A glob without a slash matches names at any depth.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Final

CHOICES_MAX: Final = 128
LENGTH_MAX: Final = 1_000


class BadGlob(Exception):
    """The text is not a valid glob."""


@lru_cache(maxsize=4096)
def compile_glob(glob: str) -> re.Pattern[str]:
    """The regular expression for relative paths that the glob matches. Raises BadGlob."""
    if not glob or len(glob) > LENGTH_MAX or "\0" in glob:
        raise BadGlob(glob)
    choices = list(_choices(glob))
    return re.compile("|".join(_regex(_anchor(choice)) for choice in choices), re.DOTALL)


def matches_glob(glob: str, path: str) -> bool:
    """Whether a relative path matches a glob."""
    return compile_glob(glob).fullmatch(path) is not None


def _anchor(glob: str) -> str:
    bare = glob.removeprefix("./")
    if bare.startswith("/"):
        return bare.lstrip("/")
    return bare if "/" in bare else f"**/{bare}"


def _choices(glob: str) -> Iterator[str]:
    """Every glob without braces that a glob with braces stands for."""
    pending, count = [glob], 0
    while pending:
        candidate = pending.pop()
        split = _braces(candidate)
        if split is None:
            count += 1
            yield candidate
        else:
            head, options, tail = split
            pending += [head + option + tail for option in reversed(options)]
        if count + len(pending) > CHOICES_MAX:
            raise BadGlob(glob)


def _braces(glob: str) -> tuple[str, list[str], str] | None:
    """The text before the first braces, their options, and the text after; None without braces."""
    depth, start, cuts = 0, 0, [0]
    at = 0
    while at < len(glob):
        char = glob[at]
        if char == "\\":
            at += 1
        elif char == "[" and not depth:
            at = _class_end(glob, at) or at
        elif char == "{":
            depth += 1
            if depth == 1:
                start, cuts = at, [at]
        elif char == "," and depth == 1:
            cuts.append(at)
        elif char == "}" and depth:
            depth -= 1
            if not depth:
                cuts.append(at)
                pairs = pairwise(cuts)
                return glob[:start], [glob[a + 1 : b] for a, b in pairs], glob[at + 1 :]
        at += 1
    if depth:
        raise BadGlob(glob)
    return None


def _regex(glob: str) -> str:
    """One glob without braces. Names between two `**` match at their first place only.

    The first place is enough, because the rest may start anywhere after it. An atomic group fixes
    it, so that a hostile glob cannot try every combination.
    """
    names = [name for name in glob.split("/") if name]
    runs: list[list[str]] = [[]]
    for name in names:
        if name == "**":
            runs.append([])
        else:
            runs[-1].append(_name(name))
    first, *later = runs
    if not later:
        return "/".join(first)
    regex = "".join(f"{name}/" for name in first)
    for run in later[:-1]:
        if run:
            regex += f"(?>(?:[^/]+/)*?{'/'.join(run)}/)"
    return f"{regex}(?:[^/]+/)*{'/'.join(later[-1]) or '[^/]+'}"


def _name(name: str) -> str:
    """One name. The text after each star but the last matches at its first place only."""
    pieces: list[str] = [""]
    at = 0
    while at < len(name):
        char = name[at]
        if char == "*":
            if pieces[-1] or len(pieces) == 1:
                pieces.append("")
        elif char == "?":
            pieces[-1] += "[^/]"
        elif char == "[" and (end := _class_end(name, at)) is not None:
            pieces[-1] += _class(name[at + 1 : end])
            at = end
        elif char == "\\" and at + 1 < len(name):
            at += 1
            pieces[-1] += re.escape(name[at])
        else:
            pieces[-1] += re.escape(char)
        at += 1
    first, *later = pieces
    if not later:
        return first
    return first + "".join(f"(?>[^/]*?{piece})" for piece in later[:-1]) + f"[^/]*{later[-1]}"


def _class_end(glob: str, at: int) -> int | None:
    """The end of the class that starts here; a bracket at its start is a member of the class."""
    start = at + 1 + (glob[at + 1 : at + 2] in {"!", "^"})
    end = glob.find("]", start + 1)
    slash = glob.find("/", start)
    return None if end < 0 or 0 <= slash < end else end


def _class(inner: str) -> str:
    negated = inner[:1] in {"!", "^"}
    body = inner[1:] if negated else inner
    members = "".join(rf"\{char}" if char in r"\[]^&~|" else char for char in body)
    regex = f"(?!/)[{'^' if negated else ''}{members}]"
    try:
        re.compile(regex)
    except re.error as error:
        raise BadGlob(inner) from error
    return regex
