"""Golden JSON: the current code reads every version of every event."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from fairlead_schema.events import BY_TYPE
from fairlead_schema.record import UPCASTERS, Commit, decode, decode_event, encode, event_json

GOLDEN = Path(__file__).parent / "golden"
PINS = Path(__file__).parent / "golden.sha256"

NAMES = sorted(path.name for path in GOLDEN.iterdir())


def version_of(name: str) -> str:
    """`<type>.<version>`. A later golden of a version with more fields has a name after a `+`."""
    return name.removesuffix(".json").partition("+")[0]


VERSIONS = {f"{type_}.{version}" for type_, version in BY_TYPE}
CURRENT = [name for name in NAMES if version_of(name) in VERSIONS]


def read_golden(name: str) -> dict[str, Any]:
    raw: dict[str, Any] = json.loads((GOLDEN / name).read_text())
    return raw


def read_pins() -> dict[str, str]:
    lines = (line.split() for line in PINS.read_text().splitlines())
    return {name: digest for digest, name in lines}


def filled_fields(value: object) -> set[tuple[str, str]]:
    """Every model field, by class, that is not None anywhere inside a value."""
    if isinstance(value, dict):
        return set().union(*map(filled_fields, value.values()))
    if isinstance(value, tuple):
        return set().union(*map(filled_fields, value))
    if not isinstance(value, BaseModel):
        return set()
    fields = {name: getattr(value, name) for name in type(value).model_fields}
    here = {(type(value).__name__, name) for name, item in fields.items() if item is not None}
    return here.union(*map(filled_fields, fields.values()))


def model_classes(value: object) -> set[type[BaseModel]]:
    """Every model class that occurs inside a value."""
    if isinstance(value, dict):
        return set().union(*map(model_classes, value.values()))
    if isinstance(value, tuple):
        return set().union(*map(model_classes, value))
    if not isinstance(value, BaseModel):
        return set()
    inner = (getattr(value, name) for name in type(value).model_fields)
    return {type(value)}.union(*map(model_classes, inner))


def test_every_event_version_has_a_golden_and_every_golden_an_event() -> None:
    old = {f"{type_}.{version}" for type_, version in UPCASTERS}

    assert set(map(version_of, NAMES)) == old | VERSIONS, (
        "a new event or version needs golden/<type>.<version>.json and its line in golden.sha256"
    )


def test_goldens_are_added_never_edited() -> None:
    digests = {name: hashlib.sha256((GOLDEN / name).read_bytes()).hexdigest() for name in NAMES}

    assert digests == read_pins(), (
        "goldens are added, never edited: logs hold these bytes. For a new optional field add a "
        "golden `<type>.<version>+<name>.json`. For a changed meaning give the event a new version "
        "and an upcaster, and add its golden. Append each `sha256sum` line to golden.sha256"
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_golden_is_filed_under_its_type_and_version(name: str) -> None:
    raw = read_golden(name)

    assert version_of(name) == f"{raw['type']}.{raw['version']}"


@pytest.mark.parametrize("name", CURRENT)
def test_a_stored_event_reads_and_writes_back_unchanged(name: str) -> None:
    raw = read_golden(name)

    recorded = decode_event(raw)

    assert event_json(recorded) == raw
    assert decode(encode(Commit("cmt_1", (recorded,)))).events == (recorded,)


@pytest.mark.parametrize("name", NAMES)
def test_every_past_version_lifts_to_an_event_of_today(name: str) -> None:
    recorded = decode_event(read_golden(name))

    assert (recorded.event.type, recorded.event.version) in BY_TYPE


def test_together_the_goldens_fill_every_field() -> None:
    events = [decode_event(read_golden(name)).event for name in CURRENT]

    everything = {
        (kind.__name__, name)
        for event in events
        for kind in model_classes(event)
        for name in kind.model_fields
    }

    assert everything - set().union(*map(filled_fields, events)) == set()


def test_a_commit_with_a_caller_keeps_its_bytes() -> None:
    payload = (
        b'{"id":"cmt_c05e3f840001Ab3CdE6fGh9IjK","by":"user:https://id.example/ada","events":['
        b'{"id":"evt_c05e3f84002dAb3CdE6fGh9IjK","seq":45,"type":"permission.replied","version":1,'
        b'"time":1767225600045,"data":{"requestID":"per_1","reply":"once"}}]}'
    )

    commit = decode(payload)

    assert commit.by == commit.events[0].by == "user:https://id.example/ada"
    assert encode(commit) == payload
