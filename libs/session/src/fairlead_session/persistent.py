"""Persistent collections: a changed copy shares almost everything with the original.

Folding one event costs the same at the start of a session and after 10,000 events, because
nothing that grows with the session is copied.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Final, Generic, TypeAlias, TypeVar, get_args, overload

from immutables import Map
from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema
from typing_extensions import override

Key = TypeVar("Key")
Value = TypeVar("Value")
Item = TypeVar("Item")

# A change copies a chunk, and an append now and then the list of chunks.
CHUNK: Final = 16


class _MapSchema:
    """Lets pydantic store a persistent map as an ordinary JSON object."""

    def __get_pydantic_core_schema__(
        self,
        source: object,
        handler: GetCoreSchemaHandler,
    ) -> CoreSchema:
        mapping = handler.generate_schema(dict[get_args(source)])  # type: ignore[misc]
        return core_schema.no_info_after_validator_function(
            Map,
            mapping,
            serialization=core_schema.plain_serializer_function_ser_schema(
                dict, return_schema=mapping
            ),
        )


PersistentMap: TypeAlias = Annotated[Map[Key, Value], _MapSchema()]


class PersistentList(Sequence[Item], Generic[Item]):
    """An immutable sequence of full chunks and one last chunk that is still short.

    Changes happen near the end, so a change copies the last chunk and the list of chunks. Equal
    items give equal chunks, however the list was made.
    """

    __slots__ = ("_full", "_last")

    def __init__(self, items: Iterable[Item] = ()) -> None:
        flat = tuple(items)
        whole = max(0, (len(flat) - 1) // CHUNK) * CHUNK
        self._full = tuple(flat[at : at + CHUNK] for at in range(0, whole, CHUNK))
        self._last = flat[whole:]

    @property
    def last(self) -> Item | None:
        """The newest item, which is what readers ask for most."""
        return self._last[-1] if self._last else None

    def append(self, item: Item) -> "PersistentList[Item]":
        """The list with one more item."""
        if len(self._last) < CHUNK:
            return self._with(self._full, (*self._last, item))
        return self._with((*self._full, self._last), (item,))

    def replace_last(self, item: Item) -> "PersistentList[Item]":
        """The list with another newest item."""
        return self._with(self._full, (*self._last[:-1], item))

    def replace(self, index: int, item: Item) -> "PersistentList[Item]":
        """The list with another item at a place counted from the start."""
        chunk, offset = divmod(index, CHUNK)
        if chunk == len(self._full):
            last = self._last
            return self._with(self._full, (*last[:offset], item, *last[offset + 1 :]))
        old = self._full[chunk]
        changed = (*old[:offset], item, *old[offset + 1 :])
        return self._with((*self._full[:chunk], changed, *self._full[chunk + 1 :]), self._last)

    def shared_length(self, other: "PersistentList[Item]") -> int:
        """How many of the first items are the same objects in both lists. Chunks are compared first."""
        whole = _count_same(self._full, other._full)  # noqa: SLF001 - of the same class
        chunk = other._chunk(whole)  # noqa: SLF001
        return whole * CHUNK + _count_same(self._chunk(whole), chunk)

    def items_from(self, start: int) -> tuple[Item, ...]:
        """The items from a place on. It costs as much as there are items."""
        first, offset = divmod(start, CHUNK)
        chunks = (self._chunk(at) for at in range(first, len(self._full) + 1))
        return tuple(item for chunk in chunks for item in chunk)[offset:]

    def _chunk(self, at: int) -> tuple[Item, ...]:
        return self._full[at] if at < len(self._full) else self._last

    def _with(
        self, full: tuple[tuple[Item, ...], ...], last: tuple[Item, ...]
    ) -> "PersistentList[Item]":
        changed: PersistentList[Item] = PersistentList.__new__(PersistentList)
        changed._full, changed._last = full, last
        return changed

    @override
    def __len__(self) -> int:
        return len(self._full) * CHUNK + len(self._last)

    @override
    def __iter__(self) -> Iterator[Item]:
        for chunk in self._full:
            yield from chunk
        yield from self._last

    @override
    def __reversed__(self) -> Iterator[Item]:
        yield from reversed(self._last)
        for chunk in reversed(self._full):
            yield from reversed(chunk)

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Item, ...]: ...
    @override
    def __getitem__(self, index: int | slice) -> Item | tuple[Item, ...]:
        if isinstance(index, slice):
            return tuple(self)[index]
        place = index if index >= 0 else len(self) + index
        if not 0 <= place < len(self):
            raise IndexError(index)
        chunk, offset = divmod(place, CHUNK)
        return (self._last if chunk == len(self._full) else self._full[chunk])[offset]

    @override
    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PersistentList):
            return NotImplemented
        return (self._full, self._last) == (other._full, other._last)

    @override
    def __hash__(self) -> int:
        return hash((self._full, self._last))

    @override
    def __repr__(self) -> str:
        return f"PersistentList({list(self)!r})"

    @classmethod
    def __get_pydantic_core_schema__(
        cls,
        source: object,
        handler: GetCoreSchemaHandler,
    ) -> CoreSchema:
        items = handler.generate_schema(list[get_args(source)])  # type: ignore[misc]
        return core_schema.no_info_after_validator_function(
            cls,
            items,
            serialization=core_schema.plain_serializer_function_ser_schema(
                list, return_schema=items
            ),
        )


def _count_same(one: tuple[object, ...], two: tuple[object, ...]) -> int:
    """How many of the first items are the same objects."""
    pairs = enumerate(zip(one, two, strict=False))
    differing = (at for at, (mine, theirs) in pairs if mine is not theirs)
    return next(differing, min(len(one), len(two)))
