"""The algebra of system context: initialise an epoch, reconcile it, or replace it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from pydantic_core import to_json

from fairlead_schema.context import (
    BaselinePart,
    ContextSample,
    ObservedSource,
    SnapshotEntry,
    UnavailableSource,
)

Snapshot: TypeAlias = Mapping[str, SnapshotEntry]


class DuplicateKey(Exception):
    """Two sources have one key. A key is a source's identity: neither can be believed."""

    def __init__(self, key: str) -> None:
        super().__init__(f"two sources have one key: {key}")
        self.key = key


@dataclass(frozen=True, slots=True)
class Baseline:
    """A complete rendering: what a new epoch begins with."""

    parts: tuple[BaselinePart, ...]
    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class Blocked:
    """Context that must be there could not be observed; nothing may be promoted or replaced."""

    keys: tuple[str, ...]
    reasons: tuple[str, ...] = field(default=(), compare=False)

    def describe(self) -> str:
        """The keys, each with its reason, for people."""
        reasons = (*self.reasons, *("" for _ in self.keys))
        pairs = zip(self.keys, reasons, strict=False)
        return "; ".join(f"{key}: {reason}" if reason else key for key, reason in pairs)


@dataclass(frozen=True, slots=True)
class ContextUnchanged:
    """Every source is as the model was last told."""


@dataclass(frozen=True, slots=True)
class Updated:
    """One text says everything that changed; the snapshot advances with it."""

    text: str
    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class Replaced:
    """The change cannot be told as an update: a fresh baseline, from the same sample."""

    baseline: Baseline


Outcome: TypeAlias = ContextUnchanged | Updated | Replaced | Blocked


def combine(*samples: ContextSample) -> ContextSample:
    """Several samples as one, in the order given. Raises DuplicateKey."""
    together = tuple(source for sample in samples for source in sample.observations)
    seen: set[str] = set()
    for source in together:
        if source.key in seen:
            raise DuplicateKey(source.key)
        seen.add(source.key)
    return ContextSample(observations=together)


def initialise(sample: ContextSample) -> Baseline | Blocked:
    """The first baseline. Every source must be observed, but for those that nobody requires.

    One that cannot be had by waiting says itself what is told instead, until it can be observed.
    """
    begun = ContextSample(observations=tuple(map(_instead, sample.observations)))
    away = tuple(source for source in _unavailable(begun) if source.required)
    return _blocked(away) if away else _baseline(begun)


def reconcile(snapshot: Snapshot, sample: ContextSample) -> Outcome:
    """Compare a sample with what the model was last told; exactly one outcome."""
    if _vanished_silently(snapshot, sample) or _reshaped(snapshot, sample):
        return replace(snapshot, sample)
    updates: list[str] = []
    current: dict[str, SnapshotEntry] = {}
    for source in sample.observations:
        stored = snapshot.get(source.key)
        if isinstance(source, UnavailableSource):
            if stored is not None:
                current[source.key] = stored
        elif stored is not None and _canonical(stored.value) == _canonical(source.value):
            current[source.key] = stored
        else:
            current[source.key] = _entry(source)
            updates.append(source.baseline if stored is None else source.update)
    updates.extend(_removals(snapshot, sample))
    return Updated("\n\n".join(updates), current) if updates else ContextUnchanged()


def replace(snapshot: Snapshot, sample: ContextSample) -> Replaced | Blocked:
    """A fresh baseline; blocked while a source the model was told of cannot be observed."""
    away = tuple(source for source in _unavailable(sample) if source.key in snapshot)
    return _blocked(away) if away else Replaced(_baseline(sample))


def text(parts: tuple[BaselinePart, ...]) -> str:
    """A baseline as the model reads it."""
    return "\n\n".join(part.text for part in parts)


def _baseline(sample: ContextSample) -> Baseline:
    seen = tuple(source for source in sample.observations if isinstance(source, ObservedSource))
    return Baseline(
        tuple(BaselinePart(key=source.key, text=source.baseline) for source in seen),
        {source.key: _entry(source) for source in seen},
    )


def _instead(source: ObservedSource | UnavailableSource) -> ObservedSource | UnavailableSource:
    if isinstance(source, UnavailableSource) and source.instead is not None:
        return source.instead
    return source


def _entry(source: ObservedSource) -> SnapshotEntry:
    return SnapshotEntry(value=source.value, removed=source.removed, shape=source.shape)


def _canonical(value: object) -> bytes:
    """A value as bytes: what is equal in Python may differ in JSON, such as 1 and true."""
    return to_json(_sorted(value))


def _sorted(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _sorted(value[key]) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return [_sorted(one) for one in value]
    return value


def _blocked(away: tuple[UnavailableSource, ...]) -> Blocked:
    return Blocked(tuple(source.key for source in away), tuple(source.reason for source in away))


def _unavailable(sample: ContextSample) -> tuple[UnavailableSource, ...]:
    return tuple(source for source in sample.observations if isinstance(source, UnavailableSource))


def _reshaped(snapshot: Snapshot, sample: ContextSample) -> bool:
    """Whether a source speaks in another form than the value that is stored of it."""
    return any(
        isinstance(source, ObservedSource)
        and source.key in snapshot
        and snapshot[source.key].shape != source.shape
        for source in sample.observations
    )


def _vanished(snapshot: Snapshot, sample: ContextSample) -> tuple[str, ...]:
    present = {source.key for source in sample.observations}
    return tuple(sorted(key for key in snapshot if key not in present))


def _vanished_silently(snapshot: Snapshot, sample: ContextSample) -> bool:
    return any(snapshot[key].removed is None for key in _vanished(snapshot, sample))


def _removals(snapshot: Snapshot, sample: ContextSample) -> list[str]:
    texts = (snapshot[key].removed for key in _vanished(snapshot, sample))
    return [removed for removed in texts if removed is not None]
