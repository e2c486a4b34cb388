"""Keeps what a pure function made of an object, as long as callers pass that very object."""

from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from typing import TypeVar

Source = TypeVar("Source")
Made = TypeVar("Made")


def kept_by_identity(size: int) -> Callable[[Callable[[Source], Made]], Callable[[Source], Made]]:
    """Decorate a pure function of one object that nobody changes and that need not be hashable.

    The last `size` objects are kept alive, so that no other object gets their identity.
    """

    def decorate(make: Callable[[Source], Made]) -> Callable[[Source], Made]:
        kept: OrderedDict[int, tuple[Source, Made]] = OrderedDict()

        @wraps(make)
        def get(source: Source) -> Made:
            found = kept.get(id(source))
            if found is None:
                found = kept[id(source)] = (source, make(source))
                if len(kept) > size:
                    kept.popitem(last=False)
            else:
                kept.move_to_end(id(source))
            return found[1]

        return get

    return decorate
