"""Answers what a location holds now: its sources and its tools, each unless the asker knows it."""

import asyncio
import os.path
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from hashlib import sha256
from typing import Any, Final, Generic, TypeAlias, TypeVar

from pydantic_core import to_json

from fairlead_schema.context import Observation
from fairlead_schema.model import Model
from fairlead_schema.tools.location_view import LocationView, ObserveLocation
from fairlead_schema.tools.request import ListTools, ToolInfo
from fairlead_tools.context.observe import Observer

HASHES_MAX: Final = 1024

Part = TypeVar("Part", bound=Model)
ListLocationTools: TypeAlias = Callable[[ListTools], Awaitable[tuple[ToolInfo, ...]]]
"""The tools that an agent may call at a location now."""


class LocationViews:
    """Looks at locations for runners. An answer holds only what differs from what its asker knows.

    A hash is of the content alone. So every worker gives equal content an equal hash, and a worker
    that has just started needs to know nothing.
    """

    def __init__(self, observer: Observer, list_tools: ListLocationTools) -> None:
        self._observer = observer
        self._list_tools = list_tools
        self._samples = _Hashes[Observation]()
        self._offers = _Hashes[ToolInfo]()

    async def look(self, question: ObserveLocation) -> LocationView:
        """The sources and, if they are asked for, the tools. Raises LogError like `Observer.observe`."""
        offer: dict[str, Any] = {}
        if question.with_tools:
            offer = await self._look_at_tools(question)
        if question.with_directory:
            directory = question.location.directory
            offer["is_directory"] = await asyncio.to_thread(os.path.isdir, directory)
        observations = (await self._observer.observe(question)).observations
        place = (question.tenant, question.location, question.agent, question.timezone)
        hash_ = self._samples.of((*place, question.read_directories), observations)
        is_known = hash_ == question.known_sample
        return LocationView(
            observations=None if is_known else observations, sample_hash=hash_, **offer
        )

    async def _look_at_tools(self, question: ObserveLocation) -> dict[str, Any]:
        place = ListTools(location=question.location, agent=question.agent, tenant=question.tenant)
        tools = await self._list_tools(place)
        hash_ = self._offers.of((question.tenant, question.location, question.agent), tools)
        return {"tools": None if hash_ == question.known_tools else tools, "tools_hash": hash_}


class _Hashes(Generic[Part]):
    """The hashes of the values that were seen last. The same objects are not hashed again."""

    def __init__(self) -> None:
        self._seen: OrderedDict[Hashable, tuple[tuple[Part, ...], str]] = OrderedDict()

    def of(self, place: Hashable, parts: tuple[Part, ...]) -> str:
        """The hash of the parts that were seen at a place."""
        seen = self._seen.get(place)
        if seen is None or not _are_same(seen[0], parts):
            seen = (parts, content_hash(parts))
            self._seen[place] = seen
            if len(self._seen) > HASHES_MAX:
                self._seen.popitem(last=False)
        self._seen.move_to_end(place)
        return seen[1]


def content_hash(parts: tuple[Model, ...]) -> str:
    """The hash of some models as they are on the wire."""
    return sha256(to_json([part.wire() for part in parts])).hexdigest()[:32]


def _are_same(first: tuple[object, ...], second: tuple[object, ...]) -> bool:
    return len(first) == len(second) and all(map(_is_same, first, second))


def _is_same(first: object, second: object) -> bool:
    return first is second
