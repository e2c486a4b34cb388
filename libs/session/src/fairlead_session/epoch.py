"""The algebra of system context: initialise an epoch, reconcile it, or replace it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from fairlead_schema.context import (
    BaselinePart,
    ContextSample,
    Observed,
    SnapshotEntry,
    Unavailable,
)

Snapshot: TypeAlias = Mapping[str, SnapshotEntry]


@dataclass(frozen=True, slots=True)
class Baseline:
    """A complete rendering: what a new epoch begins with."""

    parts: tuple[BaselinePart, ...]
    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class Blocked:
    """Context that must be there could not be observed; nothing may be promoted or replaced."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unchanged:
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


Outcome: TypeAlias = Unchanged | Updated | Replaced | Blocked


def initialise(sample: ContextSample) -> Baseline | Blocked:
    """The first baseline. Every source must be observed."""
    away = _unavailable(sample)
    return Blocked(away) if away else _baseline(sample)


def reconcile(snapshot: Snapshot, sample: ContextSample) -> Outcome:
    """Compare a sample with what the model was last told; exactly one outcome."""
    if _vanished_silently(snapshot, sample):
        return replace(snapshot, sample)
    updates: list[str] = []
    current: dict[str, SnapshotEntry] = {}
    for source in sample.observations:
        stored = snapshot.get(source.key)
        if isinstance(source, Unavailable):
            if stored is not None:
                current[source.key] = stored
        elif stored is not None and stored.value == source.value:
            current[source.key] = stored
        else:
            current[source.key] = _entry(source)
            updates.append(source.baseline if stored is None else source.update)
    updates.extend(_removals(snapshot, sample))
    return Updated("\n\n".join(updates), current) if updates else Unchanged()


def replace(snapshot: Snapshot, sample: ContextSample) -> Replaced | Blocked:
    """A fresh baseline; blocked while a source the model was told of cannot be observed."""
    away = tuple(key for key in _unavailable(sample) if key in snapshot)
    return Blocked(away) if away else Replaced(_baseline(sample))


def text(parts: tuple[BaselinePart, ...]) -> str:
    """A baseline as the model reads it."""
    return "\n\n".join(part.text for part in parts)


def _baseline(sample: ContextSample) -> Baseline:
    seen = tuple(source for source in sample.observations if isinstance(source, Observed))
    return Baseline(
        tuple(BaselinePart(key=source.key, text=source.baseline) for source in seen),
        {source.key: _entry(source) for source in seen},
    )


def _entry(source: Observed) -> SnapshotEntry:
    return SnapshotEntry(value=source.value, removed=source.removed)


def _unavailable(sample: ContextSample) -> tuple[str, ...]:
    return tuple(source.key for source in sample.observations if isinstance(source, Unavailable))


def _vanished(snapshot: Snapshot, sample: ContextSample) -> tuple[str, ...]:
    present = {source.key for source in sample.observations}
    return tuple(sorted(key for key in snapshot if key not in present))


def _vanished_silently(snapshot: Snapshot, sample: ContextSample) -> bool:
    return any(snapshot[key].removed is None for key in _vanished(snapshot, sample))


def _removals(snapshot: Snapshot, sample: ContextSample) -> list[str]:
    texts = (snapshot[key].removed for key in _vanished(snapshot, sample))
    return [removed for removed in texts if removed is not None]
