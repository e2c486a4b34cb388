"""Hides the credentials of a tool server in everything that the server says."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

HIDDEN: Final = "[hidden]"
# A shorter text is in many results by chance, so hiding it would spoil them.
LENGTH_MIN: Final = 8


@dataclass(frozen=True, slots=True)
class Secrets:
    """Secret values of a server. Messages lose all of them, results only the long credentials."""

    env: dict[str, str]
    headers: dict[str, str]
    credentials: frozenset[str] = frozenset()

    def hide(self, text: str) -> str:
        """A message without the values. Of the header `Bearer abc` a server may repeat `abc`."""
        values = {*self.env.values(), *self.headers.values()}
        return _hide(values | _long_words(values), text)

    def hide_in_result(self, value: Any) -> Any:  # noqa: ANN401 - any JSON value
        """A result without the credentials. Plain variables of the configuration stay."""
        words = _long_words(self.credentials)
        return _hide_deeply(words, value) if words else value


def _long_words(values: Iterable[str]) -> set[str]:
    return {word for value in values for word in value.split() if len(word) >= LENGTH_MIN}


def _hide(values: Iterable[str], text: str) -> str:
    for value in sorted(values, key=len, reverse=True):
        text = text.replace(value, HIDDEN) if value else text
    return text


def _hide_deeply(values: Iterable[str], value: Any) -> Any:  # noqa: ANN401 - any JSON value
    match value:
        case str():
            return _hide(values, value)
        case list():
            return [_hide_deeply(values, item) for item in value]
        case dict():
            return {_hide(values, name): _hide_deeply(values, item) for name, item in value.items()}
        case _:
            return value
