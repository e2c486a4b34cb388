"""Backup and restore against real servers: what is damaged, in use or not empty stays as it is."""

import asyncio
import json
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead_cli.__main__ import main
from fairlead_cli.backup.directory import verify_directory
from fairlead_cli.backup.restore import restore_streams
from fairlead_cli.embedded.ports import free_port
from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.grants.key_directory import KeyDirectory
from fairlead_eventlog.jetstream.connect import connect
from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_eventlog.ports import START
from fairlead_eventlog.provision import provision
from fairlead_eventlog.streams import MESSAGES
from fairlead_schema.events import SessionCreated
from fairlead_schema.location import LocationRef
from fairlead_schema.record import Draft
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_testing.nats import Server, run_guarded_server

pytestmark = pytest.mark.integration

CREATED = SessionCreated(title="t", project_id="p", location=LocationRef(directory="/w"))
SESSIONS = tuple(Address("default", f"ses_{number}") for number in range(12))


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Server]:
    yield from _run(tmp_path / "source")


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Server]:
    yield from _run(tmp_path / "target")


def _run(directory: Path) -> Iterator[Server]:
    directory.mkdir()
    running = Server(directory, free_port())
    running.start()
    try:
        yield running
    finally:
        running.kill()


@pytest.fixture
def backup(source: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A backup of twelve sessions."""
    asyncio.run(_fill(source))
    _use(monkeypatch, source)
    assert main(["backup", str(tmp_path / "backup")]) == 0
    return tmp_path / "backup"


async def _fill(server: Server) -> None:
    await provision(server.address)
    async with connect(server.address, name="test") as eventlog:
        for at in SESSIONS:
            drafts = (Draft(ids.event_id(), 1, CREATED),)
            await eventlog.log.append(at, ids.commit_id(), drafts, after=START)
        await eventlog.message_ids.bind("default", "msg_own", SESSIONS[0].session_id)


def _use(monkeypatch: pytest.MonkeyPatch, server: Server) -> None:
    monkeypatch.setenv("FAIRLEAD_NATS_URL", server.url)


async def _sessions(server: Server) -> list[Address]:
    async with connect(server.address, name="test") as eventlog:
        return [at for at in SESSIONS if await _exists(eventlog, at)]


async def _exists(eventlog: EventLog, at: Address) -> bool:
    return (await eventlog.log.head(at)) != START


def test_a_backup_comes_back_with_positions_and_ids(
    backup: Path, target: Server, monkeypatch: pytest.MonkeyPatch, source: Server
) -> None:
    _use(monkeypatch, target)

    assert main(["restore", str(backup)]) == 0

    assert asyncio.run(_sessions(target)) == list(SESSIONS)

    async def compare() -> None:
        async with (
            connect(source.address, name="test") as one,
            connect(target.address, name="test") as two,
        ):
            for at in SESSIONS:
                assert await one.log.head(at) == await two.log.head(at)
            bound = await two.message_ids.bind("default", "msg_own", "ses_other")
            assert bound == SESSIONS[0].session_id, "a used id is not accepted for another session"
            before, after = await one.status.read(), await two.status.read()
            assert before.incarnation is not None
            assert after.incarnation is not None
            assert after.incarnation.previous == before.incarnation.id
            assert after.level == before.level

    asyncio.run(compare())


def test_servers_with_a_log_are_left_alone(
    backup: Path,
    target: Server,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    _use(monkeypatch, target)

    async def write() -> None:
        await provision(target.address)
        async with connect(target.address, name="test") as eventlog:
            at = Address("default", "ses_here")
            drafts = (Draft(ids.event_id(), 1, CREATED),)
            await eventlog.log.append(at, ids.commit_id(), drafts, after=START)

    asyncio.run(write())

    assert main(["restore", str(backup)]) == 1

    assert "is not empty" in capsys.readouterr().err
    assert asyncio.run(_sessions(target)) == []


def test_a_damaged_backup_changes_nothing(
    backup: Path,
    target: Server,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    _use(monkeypatch, target)
    asyncio.run(provision(target.address))
    for damage in ("cut", "changed", "missing", "manifest", "no manifest"):
        copy = backup.with_name(damage)
        shutil.copytree(backup, copy)
        _damage(copy, damage)

        assert main(["restore", str(copy)]) == 1, damage
        assert main(["restore", str(copy), "--check"]) == 1, damage

        assert "backup" in capsys.readouterr().err
    assert asyncio.run(_sessions(target)) == []


def _damage(backup: Path, damage: str) -> None:
    file, manifest = backup / "LOG-3.stream", backup / "backup.json"
    whole = file.read_bytes()
    match damage:
        case "cut":
            file.write_bytes(whole[:-1])
        case "changed":
            file.write_bytes(whole[:9] + bytes([whole[9] ^ 1]) + whole[10:])
        case "missing":
            file.unlink()
        case "manifest":
            manifest.write_text(manifest.read_text().replace('"level": ', '"level": 1'))
        case _:
            manifest.unlink()


def test_a_server_without_streams_is_not_backed_up(
    target: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An empty backup would look like a good one."""
    _use(monkeypatch, target)

    assert main(["backup", str(tmp_path / "none")]) == 1

    assert "fairlead provision" in capsys.readouterr().err
    assert not (tmp_path / "none" / "backup.json").exists()


def test_a_second_backup_does_not_replace_the_first(
    backup: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["backup", str(backup)]) == 1
    assert "holds a backup" in capsys.readouterr().err


def test_a_disk_without_room_is_told_before_anything_is_copied(
    source: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asyncio.run(provision(source.address))
    _use(monkeypatch, source)
    monkeypatch.setattr("fairlead_cli.backup.directory.SPARE_BYTES", 1 << 60)

    assert main(["backup", str(tmp_path / "full")]) == 1

    assert "free some space" in capsys.readouterr().err


@pytest.mark.slow
def test_a_restore_that_was_killed_goes_on(
    backup: Path, target: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed after each stream in turn: the same command ends with everything, once."""
    _use(monkeypatch, target)
    streams = len(json.loads((backup / "backup.json").read_text())["backup"]["streams"])
    for lines in range(1, streams, 4):
        _kill_after(backup, target, lines)

    assert main(["restore", str(backup)]) == 0

    assert asyncio.run(_sessions(target)) == list(SESSIONS)
    assert not asyncio.run(_marks(target)), "the streams forget their backup at the end"


def _kill_after(backup: Path, target: Server, streams: int) -> None:
    """Kill the command after it restored so many streams."""
    with subprocess.Popen(
        [sys.executable, "-m", "fairlead_cli", "restore", str(backup)],
        env={"FAIRLEAD_NATS_URL": target.url, "PATH": "/usr/bin:/bin"},
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stderr is not None
        restored = 0
        for line in process.stderr:
            restored += b" messages" in line or b"restored before" in line
            if restored >= streams:
                break
        process.send_signal(signal.SIGKILL)


async def _marks(server: Server) -> list[str]:
    async with open_link(server.address, name="test") as link:
        infos = [await link.api(f"STREAM.INFO.LOG-{shard}") for shard in range(8)]
    return [info["config"]["name"] for info in infos if "fairlead-restore" in str(info["config"])]


def test_a_restore_that_was_killed_at_its_very_end_goes_on(
    backup: Path, target: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some streams have forgotten their backup already. What is restored is not taken for foreign data."""
    _use(monkeypatch, target)

    async def restore_and_forget() -> None:
        manifest = verify_directory(backup)
        await restore_streams(target.address, backup, manifest, replicas=1, progress=print)
        async with open_link(target.address, name="test") as link:
            config = (await link.api(f"STREAM.INFO.{MESSAGES.name}"))["config"]
            await link.api(f"STREAM.UPDATE.{MESSAGES.name}", config | {"metadata": {}})

    asyncio.run(restore_and_forget())

    assert main(["restore", str(backup)]) == 0
    assert asyncio.run(_sessions(target)) == list(SESSIONS)
    assert not asyncio.run(_marks(target))


@pytest.mark.slow
def test_a_restore_waits_for_servers_that_begin_to_answer(
    backup: Path,
    target: Server,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An operator starts the empty servers and the restore one after the other; leaders are elected meanwhile."""
    _use(monkeypatch, target)
    target.kill()
    start = threading.Timer(8.0, target.start)
    start.start()

    assert main(["restore", str(backup)]) == 0

    start.join()
    assert "waiting for NATS" in capsys.readouterr().err
    assert asyncio.run(_sessions(target)) == list(SESSIONS)


def test_a_restored_deployment_has_the_queues_of_all_its_pools(
    backup: Path, target: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _use(monkeypatch, target)
    config = tmp_path / "fairlead.toml"
    config.write_text('[[pool]]\nname = "gpu"\ndirectories = ["/srv/gpu"]\n')

    assert main(["restore", str(backup), "--config", str(config)]) == 0

    async def read_consumers() -> set[str]:
        async with open_link(target.address, name="test") as link:
            listed = await link.api("CONSUMER.LIST.TOOLS")
        return {each["name"] for each in listed["consumers"]}

    assert asyncio.run(read_consumers()) == {"tools-default", "tools-gpu"}


def test_the_key_of_backups_is_enough_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A CronJob needs no operator: it reads everything and changes nothing."""
    keys = KeyDirectory(tmp_path / "nats" / "keys")
    keys.root.parent.mkdir()
    keys.write(())
    with run_guarded_server(keys) as server:
        asyncio.run(provision(keys.service_address(server.url, "provision")))
        _use(monkeypatch, server)
        monkeypatch.setenv("FAIRLEAD_NATS_NKEY_FILE", str(keys.seed_file("backup")))

        assert main(["backup", str(tmp_path / "backups"), "--dated", "--keep", "3"]) == 0
        assert main(["restore", str(next((tmp_path / "backups").iterdir())), "--check"]) == 0
