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
    """Two sources have one key. A key identifies a source, so neither can be trusted."""

    def __init__(self, key: str) -> None:
        super().__init__(f"two sources have one key: {key}")
        self.key = key


@dataclass(frozen=True, slots=True)
class Baseline:
    """The complete text and values of all sources, with which an epoch begins."""

    parts: tuple[BaselinePart, ...]
    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class Blocked:
    """Required sources could not be observed, so nothing may be promoted or replaced."""

    keys: tuple[str, ...]
    reasons: tuple[str, ...] = field(default=(), compare=False)

    def describe(self) -> str:
        """The keys with their reasons, for people."""
        reasons = (*self.reasons, *("" for _ in self.keys))
        pairs = zip(self.keys, reasons, strict=False)
        return "; ".join(f"{key}: {reason}" if reason else key for key, reason in pairs)


@dataclass(frozen=True, slots=True)
class ContextUnchanged:
    """No source has changed since the model last read it."""


@dataclass(frozen=True, slots=True)
class Updated:
    """One text with all changes. The snapshot advances with it."""

    text: str
    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class Replaced:
    """No update can express the change, so a new baseline replaces the old one."""

    baseline: Baseline


ContextOutcome: TypeAlias = ContextUnchanged | Updated | Replaced | Blocked


def combine(*samples: ContextSample) -> ContextSample:
    """Several samples as one, in the order given. Raises DuplicateKey."""
    sources = tuple(source for sample in samples for source in sample.observations)
    keys: set[str] = set()
    for source in sources:
        if source.key in keys:
            raise DuplicateKey(source.key)
        keys.add(source.key)
    return ContextSample(observations=sources)


def initialise(sample: ContextSample) -> Baseline | Blocked:
    """The first baseline. Every required source must be observed.

    A source that waiting does not bring back may name a substitute until it can be observed.
    """
    complete = ContextSample(observations=tuple(map(_with_substitute, sample.observations)))
    missing = tuple(source for source in _unavailable(complete) if source.required)
    return _blocked_by(missing) if missing else _baseline(complete)


def reconcile(snapshot: Snapshot, sample: ContextSample) -> ContextOutcome:
    """Compare a sample with the values that the model last read. Exactly one outcome follows."""
    if _has_silent_removal(snapshot, sample) or _has_new_shape(snapshot, sample):
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
    updates.extend(_removal_texts(snapshot, sample))
    return Updated("\n\n".join(updates), current) if updates else ContextUnchanged()


def replace(snapshot: Snapshot, sample: ContextSample) -> Replaced | Blocked:
    """A new baseline. Blocked while a source that the model knows cannot be observed."""
    missing = tuple(source for source in _unavailable(sample) if source.key in snapshot)
    return _blocked_by(missing) if missing else Replaced(_baseline(sample))


def text(parts: tuple[BaselinePart, ...]) -> str:
    """A baseline as the model reads it."""
    return "\n\n".join(part.text for part in parts)


def _baseline(sample: ContextSample) -> Baseline:
    sources = tuple(source for source in sample.observations if isinstance(source, ObservedSource))
    return Baseline(
        tuple(BaselinePart(key=source.key, text=source.baseline) for source in sources),
        {source.key: _entry(source) for source in sources},
    )


def _with_substitute(
    source: ObservedSource | UnavailableSource,
) -> ObservedSource | UnavailableSource:
    if isinstance(source, UnavailableSource) and source.instead is not None:
        return source.instead
    return source


def _entry(source: ObservedSource) -> SnapshotEntry:
    return SnapshotEntry(value=source.value, removed=source.removed, shape=source.shape)


def _canonical(value: object) -> bytes:
    """A value as JSON bytes. Values that are equal in Python may differ in JSON: 1 and true."""
    return to_json(_sort_keys(value))


def _sort_keys(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _sort_keys(value[key]) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return [_sort_keys(item) for item in value]
    return value


def _blocked_by(missing: tuple[UnavailableSource, ...]) -> Blocked:
    return Blocked(
        tuple(source.key for source in missing), tuple(source.reason for source in missing)
    )


def _unavailable(sample: ContextSample) -> tuple[UnavailableSource, ...]:
    return tuple(source for source in sample.observations if isinstance(source, UnavailableSource))


def _has_new_shape(snapshot: Snapshot, sample: ContextSample) -> bool:
    """Whether the value of a source has another form than its stored value."""
    return any(
        isinstance(source, ObservedSource)
        and source.key in snapshot
        and snapshot[source.key].shape != source.shape
        for source in sample.observations
    )


def _removed_keys(snapshot: Snapshot, sample: ContextSample) -> tuple[str, ...]:
    present = {source.key for source in sample.observations}
    return tuple(sorted(key for key in snapshot if key not in present))


def _has_silent_removal(snapshot: Snapshot, sample: ContextSample) -> bool:
    return any(snapshot[key].removed is None for key in _removed_keys(snapshot, sample))


def _removal_texts(snapshot: Snapshot, sample: ContextSample) -> list[str]:
    texts = (snapshot[key].removed for key in _removed_keys(snapshot, sample))
    return [removed for removed in texts if removed is not None]
