"""Commits as JSON: whatever the log holds, the same as through the models, with the same errors."""

import copy
import random
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import AfterValidator, Field, field_validator
from pydantic_core import to_json

from fairlead_schema import record as module
from fairlead_schema.events import BY_TYPE, MANIFEST
from fairlead_schema.model import Model
from fairlead_schema.raw_records import raw_decoder
from fairlead_schema.raw_records.json_form import NoJsonForm, json_form
from fairlead_schema.raw_records.raw_commit import RawCommit, raw_commit
from fairlead_schema.raw_records.raw_decoder import decode_raw
from fairlead_schema.record import RecordError, decode

GOLDENS = [
    orjson.loads(path.read_bytes()) for path in sorted((Path(__file__).parent / "golden").iterdir())
]
STRANGE: tuple[object, ...] = (
    None, True, 0, 1, -1, 1.0, 0.5, 2**70, "", "x", "1", "steer", [], ["x"], [None], {}, {"a": None}, {"a": [None]},
    {"text": "t", "type": "text"}, {"type": "file"},
)  # fmt: skip


def payload_of(*events: dict[str, Any], **fields: object) -> bytes:
    return to_json({"id": "cmt_1", **fields, "events": list(events)})


def outcome(read: Callable[[bytes], RawCommit], payload: bytes) -> tuple[object, ...]:
    """What reading gives, down to the order of keys; or the error as a client reads it."""
    try:
        commit = read(payload)
    except RecordError as error:
        return type(error), str(error)
    return commit, to_json([event.data for event in commit.events], inf_nan_mode="null")


def through_models(payload: bytes) -> RawCommit:
    return raw_commit(decode(payload))


def assert_same(payload: bytes) -> None:
    assert outcome(decode_raw, payload) == outcome(through_models, payload)


def needs_models(payload: bytes) -> bool:
    try:
        raw_decoder._COMMIT.validate_json(payload)  # noqa: SLF001 - which of both ways it takes
    except ValueError:
        return True
    return False


@pytest.mark.parametrize("raw", GOLDENS, ids=lambda raw: f"{raw['type']}.{raw['version']}")
def test_an_event_of_every_release_reads_as_through_the_models(raw: dict[str, Any]) -> None:
    payload = payload_of(raw, by="key:ci")

    assert_same(payload)
    assert needs_models(payload) == ((raw["type"], raw["version"]) not in BY_TYPE)


def test_every_event_has_a_json_form() -> None:
    """Without one it is read correctly, but a replay of it costs three times as much."""
    assert set(raw_decoder._FORMS) == set(MANIFEST)  # noqa: SLF001


def places(value: object) -> list[tuple[Any, Any]]:
    """Every container inside a value with each of its keys."""
    items: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    inside = [place for _, item in items for place in places(item)]
    return [(value, key) for key, _ in items] + inside


def snake_case(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name.replace("ID", "Id"))


def damage(event: dict[str, Any], chance: random.Random) -> None:
    """Change one place of an event as another release or a broken writer might."""
    container, key = chance.choice(places(event))
    match chance.randrange(6) if isinstance(container, dict) else 0:
        case 0:
            container[key] = copy.deepcopy(chance.choice(STRANGE))
        case 1:
            del container[key]
        case 2:
            container["unknown"] = copy.deepcopy(chance.choice(STRANGE))
        case 3:
            container[snake_case(key)] = container.pop(key)
        case 4:
            container[snake_case(key)] = copy.deepcopy(container[key])
        case _:
            items = list(container.items())
            chance.shuffle(items)
            container.clear()
            container.update(items)


@settings(max_examples=600, deadline=None)
@given(st.integers(min_value=0, max_value=2**32), st.integers(min_value=0, max_value=3))
def test_a_damaged_event_reads_as_through_the_models(seed: int, damages: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - a test
    events = [copy.deepcopy(chance.choice(GOLDENS)) for _ in range(chance.randint(1, 3))]
    for _ in range(damages):
        damage(chance.choice(events), chance)

    assert_same(payload_of(*events))


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"no json",
        b"[]",
        b"null",
        b'{"id":"cmt_1"}',
        b'{"id":"cmt_1","events":[]}',
        b'{"id":"cmt_1","events":{}}',
        b'{"id":"cmt_1","events":[null]}',
        b'{"id":1,"events":[%s]}' % to_json(GOLDENS[0]),
        b'{"id":"cmt_1","level":99,"events":[%s]}' % to_json(GOLDENS[0]),
        b'{"id":"cmt_1","level":1,"later":{"a":1},"events":[%s]}' % to_json(GOLDENS[0]),
        b'{"id":"cmt_1","level":"1","events":[%s]}' % to_json(GOLDENS[0]),
        b'{"id":"cmt_1","by":7,"events":[%s]}' % to_json(GOLDENS[0]),
        b'{"id":"cmt_1","by":null,"events":[%s]}' % to_json(GOLDENS[0]),
        b'{"id":"cmt_1","by":"key:ci","by":"key:other","events":[%s]}' % to_json(GOLDENS[0]),
    ],
)
def test_a_strange_commit_reads_as_through_the_models(payload: bytes) -> None:
    assert_same(payload)


@pytest.mark.parametrize(
    ("finish", "cost"),
    [
        (b"stop", b"1"),
        (b"stop", b"1e16"),
        (b"stop", b"1e400"),
        (b"stop", b"NaN"),
        (b"stop", b'0.5,"cost":0.25'),
        (b"stop", b'0.5,"snapshot":null'),
        (b"\\ud800", b"0.5"),
        (b"\xff", b"0.5"),
    ],
)
def test_strange_numbers_and_texts_read_as_through_the_models(finish: bytes, cost: bytes) -> None:
    tokens = b'{"input":1,"output":1,"reasoning":1,"cache":{"read":0,"write":0}}'
    data = b'{"assistantMessageID":"m","finish":"%s","cost":%s,"tokens":%s}' % (
        finish,
        cost,
        tokens,
    )
    event = b'{"id":"evt_1","seq":1,"type":"step.ended","version":1,"time":1,"data":%s}' % data

    assert_same(b'{"id":"cmt_1","events":[%s]}' % event)


def test_an_old_version_is_lifted_as_through_the_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """H-38: clients see only the version of today."""
    golden = next(raw for raw in GOLDENS if raw["type"] == "text.ended")
    old = golden | {"version": 0}
    monkeypatch.setattr(module, "UPCASTERS", {("text.ended", 0): lambda data: data | {"text": "!"}})

    assert_same(payload_of(golden, old | {"seq": golden["seq"] + 1}))
    assert decode_raw(payload_of(old)).events[0].data["text"] == "!"


class _Converted(Model):
    text: str

    @field_validator("text")
    @classmethod
    def _strip(cls, value: str) -> str:
        return value.strip()


class _Renamed(Model):
    text: str = Field(serialization_alias="words")


class _Foreign(Model):
    items: frozenset[str]


class _Checked(Model):
    text: Annotated[str, AfterValidator(str.strip)]
    other: _Converted | None = None


@pytest.mark.parametrize("kind", [_Converted, _Renamed, _Foreign, _Checked])
def test_a_model_that_converts_its_json_has_no_form(kind: type[Model]) -> None:
    with pytest.raises(NoJsonForm):
        json_form(kind)
