"""The manifest of a backup: damage and strangers are told, each with what to do."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_cli.backup.manifest import (
    BackupDamaged,
    CopiedStream,
    Manifest,
    decode_manifest,
    encode_manifest,
)
from fairlead_cli.backup.restore import restored_config
from fairlead_eventlog.backup.copy_order import (
    AFTER_LOG,
    BEFORE_LOG,
    COPY_ORDER,
    LEFT_OUT,
    LOGS,
    RESTORE_ORDER,
    unknown_streams,
)
from fairlead_eventlog.provision import stream_config
from fairlead_eventlog.streams import EVENTS
from fairlead_schema.record import LEVEL_NEWEST


def copied(name: str) -> CopiedStream:
    return CopiedStream(
        name=name,
        file=f"{name}.stream",
        bytes=3,
        sha256="00",
        config={"name": name},
        state={"messages": 2, "last_seq": 9},
    )


def manifest(**changes: Any) -> Manifest:  # noqa: ANN401 - any field
    fields: dict[str, Any] = {
        "fairlead": "fairlead-backup",
        "version": 1,
        "id": "b1",
        "release": "0.1.0",
        "began": "2026-01-01T00:00:00.000+00:00",
        "ended": "2026-01-01T00:00:01.000+00:00",
        "level": 1,
        "incarnation": "abc",
        "streams": tuple(copied(name) for name in RESTORE_ORDER),
    }
    return Manifest(**fields | changes)


def test_every_declared_stream_is_copied_or_left_out_for_a_reason() -> None:
    """A new stream needs a decision: copied before or after the log, or made again."""
    assert not unknown_streams()
    assert not set(RESTORE_ORDER) & set(LEFT_OUT)
    assert sorted(name for step in COPY_ORDER for name in step) == sorted(RESTORE_ORDER)
    assert RESTORE_ORDER[-len(LOGS) :] == LOGS, "no service can work before the log is there"


def test_what_names_something_is_copied_before_it() -> None:
    """The feed before the log, prompts before the log; ids and objects after it."""
    assert {"PROMPTS", "RECEIPTS", "EVENTS"} <= set(BEFORE_LOG)
    assert BEFORE_LOG.index("KV_fairlead-checkpoint") < BEFORE_LOG.index("EVENTS")
    assert BEFORE_LOG.index("PROMPTS") < BEFORE_LOG.index("RECEIPTS")
    assert {"MESSAGES", "OBJ_fairlead-output", "OBJ_fairlead-attachment"} <= set(AFTER_LOG)


def test_a_manifest_comes_back_as_it_was_written() -> None:
    written = manifest()

    assert decode_manifest(encode_manifest(written)) == written
    assert written.commits == 2 * len(LOGS)


@given(st.data())
def test_a_manifest_with_any_other_byte_is_refused(data: st.DataObject) -> None:
    """Whatever was changed or cut: the answer is an error that names the file, or the same content."""
    whole = encode_manifest(manifest())
    place = data.draw(st.integers(0, len(whole) - 1))
    other = data.draw(st.sampled_from([b"", b"0", b"x", b"}", b'"']))
    changed = whole[:place] + other + whole[place + 1 :]
    try:
        found = decode_manifest(changed)
    except BackupDamaged:
        return
    assert found == manifest(), "only the space between its words was changed"


@given(st.binary(max_size=200))
def test_rubbish_is_no_backup(rubbish: bytes) -> None:
    with pytest.raises(BackupDamaged):
        decode_manifest(rubbish)


def reseal(written: Manifest, **changes: Any) -> bytes:  # noqa: ANN401 - any field
    """A manifest of another program: its digest fits."""
    return encode_manifest(written.model_copy(update=changes))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"fairlead": "other"}, "not of a backup"),
        ({"version": 2}, "version 2"),
        ({"level": LEVEL_NEWEST + 1}, "install release"),
        ({"streams": (copied("LOG-0"),)}, "lacks LOG-1"),
        (
            {"streams": (*map(copied, RESTORE_ORDER), copied("OTHER"))},
            "which this release does not know",
        ),
    ],
)
def test_a_backup_of_another_kind_says_what_to_do(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(BackupDamaged, match=reason):
        decode_manifest(reseal(manifest(), **changes))


def test_a_file_outside_of_the_directory_is_refused() -> None:
    """A backup from elsewhere never makes the command read another file."""
    outside = copied("LOG-0").model_copy(update={"file": "../keys.json"})
    streams = tuple(outside if name == "LOG-0" else copied(name) for name in RESTORE_ORDER)

    with pytest.raises(BackupDamaged, match="outside"):
        decode_manifest(reseal(manifest(), streams=streams))


@pytest.mark.parametrize("replicas", [1, 3])
def test_a_restored_stream_keeps_its_limits_and_gets_the_copies_of_its_new_place(
    replicas: int,
) -> None:
    before = stream_config(EVENTS, 4 - replicas) | {"max_age": 7, "metadata": {"kept": "yes"}}
    stream = copied(EVENTS.name).model_copy(update={"config": before})

    config = restored_config(stream, "b1", replicas)

    assert config["num_replicas"] == replicas
    assert config["max_age"] == 7
    assert config["persist_mode"] == ("async" if replicas == 1 else "default")
    assert config["metadata"] == {"kept": "yes", "fairlead-restore": "b1"}
    assert json.dumps(config)
