"""Static keys and the files that hold them: rotation, expiry, and files that break."""

import json
import logging
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fairlead_schema.errors import Unauthorized
from fairlead_service.identity.authenticator import TokenAuthenticator, audit_key_changes
from fairlead_service.identity.key_file import add_key, load_keys, revoke_key
from fairlead_service.identity.keys import (
    KeyRing,
    KeysDocument,
    mint_key,
    parse_key_ring,
    parse_keys,
)
from fairlead_service.identity.watched_file import (
    CHECK_INTERVAL_S,
    FILE_BYTES_MAX,
    MISS_INTERVAL_S,
    FileUnusable,
    WatchedFile,
)

NOW = 1_700_000_000_000


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "keys.json"


def test_a_key_names_its_principal() -> None:
    key, entry = mint_key(["viewer", "session:purge"], tenant="acme", roots=("/work",), cost=1.0)

    principal = KeyRing([entry]).principal(key, now_ms=NOW)

    assert principal.name == f"key:{entry.id}"
    assert (principal.tenant, principal.roots, principal.cost) == ("acme", ("/work",), 1.0)
    assert principal.scopes == {"session:read", "session:purge"}


def test_a_file_never_holds_the_key_itself(path: Path) -> None:
    key, entry = mint_key(["user"])

    add_key(path, entry)

    assert key not in path.read_text()
    assert key.rsplit("_", 1)[1] not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600


def test_several_keys_count_at_once_for_rotation(path: Path) -> None:
    keys = []
    for _ in range(3):
        key, entry = mint_key(["user"])
        add_key(path, entry)
        keys.append(key)
    revoke_key(path, keys[0].split("_")[1], at=datetime.now(UTC))

    ring = parse_key_ring(path.read_text())

    with pytest.raises(Unauthorized, match="revoked"):
        ring.principal(keys[0], now_ms=NOW)
    assert len({ring.principal(key, now_ms=NOW).name for key in keys[1:]}) == 2


def test_a_key_ends_when_it_expires() -> None:
    expires = datetime.fromtimestamp(NOW / 1000, UTC)
    key, entry = mint_key(["user"], expires=expires)
    ring = KeyRing([entry])

    assert ring.principal(key, now_ms=NOW - 1).expires_at == NOW
    with pytest.raises(Unauthorized, match="expired"):
        ring.principal(key, now_ms=NOW)


def test_revoking_again_keeps_the_first_time(path: Path) -> None:
    key, entry = mint_key(["user"])
    add_key(path, entry)
    first = datetime.now(UTC) - timedelta(days=1)

    revoke_key(path, entry.id, at=first)
    again = revoke_key(path, entry.id, at=datetime.now(UTC))

    assert again is not None
    assert again.revoked == first
    assert revoke_key(path, "unknown", at=first) is None
    assert key


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"roles": ["viewer", "session:everything"]}, "'session:everything' is neither a role"),
        ({"roles": []}, "keys.0.roles"),
        ({"sha256": "abc"}, "keys.0.sha256"),
        ({"id": "a_b"}, "keys.0.id"),
        ({"id": "a.b"}, "keys.0.id"),
        ({"tenant": "a.b"}, "keys.0.tenant"),
        ({"expires": "2026-01-01T00:00:00"}, "keys.0.expires"),
        ({"secret": "x"}, "keys.0.secret"),
    ],
)
def test_a_broken_entry_is_named(change: dict[str, object], reason: str) -> None:
    _, entry = mint_key(["viewer"])
    fields = entry.model_dump(mode="json", exclude_none=True) | change

    with pytest.raises(ValueError, match=reason):
        parse_keys(json.dumps({"keys": [fields]}))


def test_an_id_stands_once() -> None:
    _, entry = mint_key(["viewer"])
    fields = entry.model_dump(mode="json", exclude_none=True)

    with pytest.raises(ValueError, match="stands twice"):
        parse_keys(json.dumps({"keys": [fields, fields]}))


def test_a_file_is_read_again_when_it_changes(path: Path) -> None:
    clock = Clock()
    path.write_text("one")
    file = WatchedFile(path, str.upper, clock=clock)

    path.write_text("three")
    assert file.current() == "ONE", "the disk is asked at most once a second"
    clock.now += CHECK_INTERVAL_S
    assert file.current() == "THREE"

    replacement = path.with_name("new")
    replacement.write_text("again")
    os.utime(replacement, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    replacement.replace(path)
    clock.now += CHECK_INTERVAL_S
    assert file.current() == "AGAIN", "a file with the time and the size of the old one"


@pytest.mark.parametrize("damage", ["garbage", "unknown scope", "too large", "gone", "directory"])
def test_a_broken_keys_file_changes_nothing_and_is_reported(
    path: Path, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    caplog.set_level(logging.ERROR)
    clock = Clock()
    key, entry = mint_key(["viewer"])
    add_key(path, entry)
    file = WatchedFile(path, parse_key_ring, clock=clock)
    good = path.read_text()

    path.unlink()
    match damage:
        case "garbage":
            path.write_text("{")
        case "unknown scope":
            path.write_text(good.replace("viewer", "emperor"))
        case "too large":
            path.write_text(good + " " * FILE_BYTES_MAX)
        case "directory":
            path.mkdir()
        case _:
            pass
    for _ in range(3):
        clock.now += 2
        assert file.current().principal(key, now_ms=NOW).name == f"key:{entry.id}"

    (line,) = caplog.records
    assert line.message == "changed file cannot be used: its old content stays in force"
    assert str(path) in vars(line)["path"]

    if damage == "directory":
        path.rmdir()
    path.write_text(good.replace("viewer", "admin"))
    clock.now += 2
    assert file.current().principal(key, now_ms=NOW).may("ops"), "a mended file counts again"


def test_a_broken_file_at_the_start_is_an_error_that_names_it(path: Path) -> None:
    with pytest.raises(FileUnusable, match=r"keys\.json: No such file"):
        WatchedFile(path, parse_key_ring)
    assert load_keys(path).keys == ()
    path.write_text("[]")
    with pytest.raises(FileUnusable, match=r"keys\.json"):
        load_keys(path)


def test_changes_of_keys_are_audited_where_they_take_effect(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "fairlead.audit")
    clock = Clock()
    _, kept = mint_key(["viewer"], tenant="acme")
    _, gone = mint_key(["viewer"])
    _, edited = mint_key(["viewer"])
    for entry in (kept, gone, edited):
        add_key(path, entry)
    file = WatchedFile(path, parse_key_ring, on_change=audit_key_changes, clock=clock)

    _, added = mint_key(["user"])
    revoked = kept.model_copy(update={"revoked": datetime.now(UTC)})
    keys = [revoked, edited.model_copy(update={"roles": ("admin",)}), added]
    path.write_text(KeysDocument(keys=tuple(keys)).model_dump_json(exclude_none=True))
    clock.now += 2
    file.current()

    lines = [vars(record) for record in caplog.records if record.name == "fairlead.audit"]
    assert [(line["action"], line["resource"], line["tenant"]) for line in lines] == [
        ("token.revoke", kept.id, "acme"),
        ("token.change", edited.id, "default"),
        ("token.create", added.id, "default"),
        ("token.remove", gone.id, "default"),
    ]


async def test_a_key_that_was_made_just_now_counts_at_once_and_a_flood_asks_no_disk(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script makes a key and uses it. Whoever guesses keys makes nobody read the file each time."""
    clock, looks = Clock(), 0
    add_key(path, mint_key(["user"])[1])
    file = WatchedFile(path, parse_key_ring, clock=clock)
    authenticator = TokenAuthenticator(file, None)
    key, entry = mint_key(["user"])
    with pytest.raises(Unauthorized):
        await authenticator.authenticate(lambda: key)
    add_key(path, entry)
    clock.now += MISS_INTERVAL_S
    assert (await authenticator.authenticate(lambda: key)).name == f"key:{entry.id}"

    def look(_path: Path) -> os.stat_result:
        nonlocal looks
        looks += 1
        raise OSError

    monkeypatch.setattr(os, "stat", look)
    clock.now += MISS_INTERVAL_S
    for _ in range(50):
        with pytest.raises(Unauthorized):
            await authenticator.authenticate(lambda: "flk_guess_key")
    assert looks == 1
