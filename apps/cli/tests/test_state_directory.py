"""The state directory is closed to other users."""

import os
import stat
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from fairlead_cli.embedded.configuration import choose_config
from fairlead_cli.embedded.nats import NatsServer
from fairlead_cli.embedded.postgres.access import PostgresAccess, add_password
from fairlead_cli.embedded.postgres.passwords import PostgresPasswords
from fairlead_cli.embedded.postgres.socket_directory import choose_socket_directory
from fairlead_cli.embedded.private_files import write_private
from fairlead_cli.embedded.state_directory import lock_state, prepare_state, save_addresses
from fairlead_cli.errors import StateUnusable


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_state_directory_is_closed(tmp_path: Path) -> None:
    """B16: the state was readable for every user, with the prompts in plain text."""
    state = prepare_state(tmp_path / "state")
    with lock_state(state):
        save_addresses(state, {"http": "http://127.0.0.1:1"})

    assert {mode(directory) for directory in (state.root, *state.directories())} == {0o700}
    assert mode(state.root / "run.json") == mode(state.root / "lock") == 0o600


def test_an_open_state_directory_of_an_earlier_release_is_closed(tmp_path: Path) -> None:
    """B16: directories that exist are tightened at the next start."""
    state = prepare_state(tmp_path / "state")
    files = [state.root / "lock", state.root / "run.json", state.log_path("runner")]
    files += [state.nats / "nats.conf", state.token]
    for path in files:
        path.write_text("{}")
        path.chmod(0o644)
    for directory in (state.root, state.nats, state.logs):
        directory.chmod(0o755)

    prepare_state(state.root)

    assert {mode(path) for path in files} == {0o600}
    assert {mode(path) for path in (state.root, state.nats, state.logs)} == {0o700}


def test_a_directory_that_others_use_stays_open(tmp_path: Path) -> None:
    """`--state /tmp` or `--state .` closes what the stack makes there, and nothing else."""
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "notes.txt").write_text("not ours")
    shared.chmod(0o755)
    (shared / "notes.txt").chmod(0o644)

    state = prepare_state(shared)

    assert mode(shared) == 0o755
    assert mode(shared / "notes.txt") == 0o644
    assert {mode(directory) for directory in state.directories()} == {0o700}


def test_files_that_people_wrote_stay(tmp_path: Path) -> None:
    """`--state .` in a project replaced the project's `.gitignore` and its `fairlead.toml`."""
    for name in (".gitignore", "fairlead.toml"):
        (tmp_path / name).write_text("# mine\n")

    state = prepare_state(tmp_path)

    assert (tmp_path / ".gitignore").read_text() == "# mine\n"
    with pytest.raises(StateUnusable, match=r"fairlead\.toml.*--state"):
        choose_config(state.config, config_path=None, sim=True, env={}, cwd=tmp_path)
    assert (tmp_path / "fairlead.toml").read_text() == "# mine\n"


def test_a_generated_configuration_is_written_again(tmp_path: Path) -> None:
    state = prepare_state(tmp_path / "state")
    for _ in range(2):
        choose_config(state.config, config_path=None, sim=True, env={}, cwd=tmp_path)

    assert mode(state.config) == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_the_state_of_another_user_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    """One `sudo fairlead up` took files from the user, who could never start again."""
    state = prepare_state(tmp_path / "state")
    with lock_state(state):
        pass
    for path in (state.root, *state.root.rglob("*")):
        os.chown(path, 1, 1)

    with pytest.raises(StateUnusable, match=r"uid 1:.*--state"):
        prepare_state(state.root)

    assert {path.stat().st_uid for path in (state.root, *state.root.rglob("*"))} == {1}


def test_a_private_file_is_whole_or_old_and_replaces_a_link(tmp_path: Path) -> None:
    """A full disk left an empty password file, with which Postgres could not be used again."""
    target, path = tmp_path / "target", tmp_path / "file"
    target.write_text("not ours")
    path.symlink_to(target)
    (tmp_path / ".file.new").write_text("left by a crash")

    write_private(path, "ours")

    assert (target.read_text(), path.read_text(), mode(path)) == ("not ours", "ours", 0o600)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["file", "target"]


def test_an_empty_password_file_is_no_password(tmp_path: Path) -> None:
    passwords = PostgresPasswords(tmp_path)
    for text in ("", "*:*:*:reader:\n", "*:*:*:other:word\n"):
        passwords.file("reader").write_text(text)
        assert not passwords.has("reader")

    assert passwords.ensure("reader")
    assert passwords.has("reader")


def test_a_path_with_a_comma_gets_another_directory_for_its_socket() -> None:
    """Postgres and its clients read a comma as the end of one directory of several."""
    chosen = choose_socket_directory(Path("/a,b"), "socket", {"XDG_RUNTIME_DIR": "/c,d"})
    try:
        assert "," not in str(chosen)
        assert mode(chosen) == 0o700
    finally:
        chosen.rmdir()


def test_a_path_with_other_letters_is_written_as_it_is(tmp_path: Path) -> None:
    """nats-server refuses the escapes of JSON for letters outside ASCII."""
    state = prepare_state(tmp_path / "été 漢")

    assert str(state.nats) in NatsServer(state, 1, 2).config()


def test_a_socket_directory_that_somebody_prepared_is_not_used(tmp_path: Path) -> None:
    """B16: another user could make the directory first, and catch the connections in it."""
    long = tmp_path / ("long" * 30)
    chosen = choose_socket_directory(long, "socket", {})
    try:
        chosen.chmod(0o777)

        with pytest.raises(StateUnusable, match="--state"):
            choose_socket_directory(long, "socket", {})
    finally:
        chosen.rmdir()


def test_only_our_own_password_files_are_read(tmp_path: Path) -> None:
    """A user's file may have many lines and rules of its own: the client library reads it."""
    access = PostgresAccess(tmp_path, PostgresPasswords(tmp_path))
    ours, theirs = access.dsn("reader"), f"user=reader passfile={tmp_path / 'pgpass'}"
    password = access.passwords.ensure("reader")
    (tmp_path / "pgpass").write_text(f"*:*:*:reader:{password}\ndb:*:*:reader:other\n")

    assert conninfo_to_dict(add_password(ours))["password"] == password
    assert add_password(theirs) == theirs
    assert add_password("user=reader") == "user=reader"
    assert add_password(access.dsn("nobody")) == access.dsn("nobody")
