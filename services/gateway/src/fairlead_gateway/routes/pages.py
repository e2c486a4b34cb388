"""Pages: their default size, how a previous page is read, and which cursors a page has."""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from fairlead_gateway.reads.read_model import Direction, Order
from fairlead_schema.model import Model

PAGE_DEFAULT: Final = 50

Item = TypeVar("Item")


class PageCursors(Model):
    """The cursors of the neighbouring pages. An empty page has none."""

    previous: str | None = None
    next: str | None = None


def scan_order(order: Order, direction: Direction) -> Order:
    """The order to query in. A previous page is queried backwards."""
    if direction == "next":
        return order
    return "asc" if order == "desc" else "desc"


def in_page_order(items: Sequence[Item], direction: Direction) -> tuple[Item, ...]:
    """The items that were queried in `scan_order`, in the order of the list."""
    return tuple(items) if direction == "next" else tuple(reversed(items))


def page_cursors(items: Sequence[Item], encode: Callable[[Item, Direction], str]) -> PageCursors:
    """A page with items has both cursors, also at the ends of the list; an empty page has none."""
    if not items:
        return PageCursors()
    return PageCursors(previous=encode(items[0], "previous"), next=encode(items[-1], "next"))
