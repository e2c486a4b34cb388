"""`fairlead token`, and where the commands find the key of a stack."""

import argparse
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest

from fairlead_cli.__main__ import main
from fairlead_cli.commands.stack.token import parse_expiry
from fairlead_cli.embedded.access_key import ensure_key
from fairlead_cli.embedded.state_directory import (
    StateDirectory,
    lock_state,
    prepare_state,
    save_addresses,
)
from fairlead_cli.errors import StateUnusable, UsageError
from fairlead_cli.gateway import gateway_of
from fairlead_cli.options.shared import add_http
from fairlead_schema.errors import Unauthorized
from fairlead_service.identity.key_file import load_keys
from fairlead_service.identity.keys import parse_key_ring
from fairlead_service.ids import now_ms

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    return tmp_path / "keys.json"


def create(keys: Path, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert main(["token", "create", "--keys-file", str(keys), *options]) == 0
    return capsys.readouterr().out.strip()


def test_a_key_is_printed_once_and_counts(keys: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key = create(
        keys, capsys, "--role", "user", "--scope", "session:purge", "--tenant", "acme", "--name",
        "ci", "--expires", "30d", "--root", "/work", "--agent", "build", "--cost", "2",
    )  # fmt: skip

    principal = parse_key_ring(keys.read_text()).principal(key, now_ms=now_ms())
    assert (principal.tenant, principal.may("session:purge")) == ("acme", True)
    assert (principal.roots, principal.agents, principal.cost) == (("/work",), ("build",), 2.0)
    assert principal.expires_at is not None
    assert key not in keys.read_text()


def test_the_list_shows_keys_without_secrets(
    keys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = create(keys, capsys, "--role", "viewer", "--name", "reader")

    assert main(["token", "list", "--json", "--keys-file", str(keys)]) == 0
    line = json.loads(capsys.readouterr().out)
    assert main(["token", "list", "--keys-file", str(keys)]) == 0
    shown = capsys.readouterr().out

    assert (line["id"], line["name"]) == (key.split("_")[1], "reader")
    assert "sha256" not in line
    assert "reader" in shown
    assert key.split("_")[2] not in shown


def test_a_revoked_key_does_not_count(keys: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key = create(keys, capsys, "--role", "viewer")

    assert main(["token", "revoke", key.split("_")[1], "--keys-file", str(keys)]) == 0

    with pytest.raises(Unauthorized, match="revoked"):
        parse_key_ring(keys.read_text()).principal(key, now_ms=now_ms())


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["create"], "say what the key may do"),
        (["create", "--role", "user", "--tenant", "a.b"], "tenant"),
        (["create", "--role", "user", "--expires", "soon"], "--expires soon"),
        (["revoke", "unknown"], "has no key unknown"),
    ],
)
def test_mistakes_are_one_line_that_says_what_to_do(
    keys: Path, capsys: pytest.CaptureFixture[str], options: list[str], reason: str
) -> None:
    action, *rest = options

    assert main(["token", action, *rest, "--keys-file", str(keys)]) != 0

    error = capsys.readouterr().err
    assert reason in error
    assert error.count("\n") == 1


def test_a_broken_file_is_named_and_stays_as_it_is(
    keys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keys.write_text("{")

    assert main(["token", "create", "--role", "user", "--keys-file", str(keys)]) == 1

    assert str(keys) in capsys.readouterr().err
    assert keys.read_text() == "{"


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("90m", NOW + timedelta(minutes=90)),
        ("12h", NOW + timedelta(hours=12)),
        ("30d", NOW + timedelta(days=30)),
        ("2027-01-31T00:00:00Z", datetime(2027, 1, 31, tzinfo=UTC)),
        ("2027-01-31", datetime(2027, 1, 31, tzinfo=UTC)),
    ],
)
def test_a_key_ends_after_a_time_or_at_a_moment(text: str, moment: datetime) -> None:
    assert parse_expiry(text, NOW) == moment
    with pytest.raises(UsageError):
        parse_expiry(f"{text}x", NOW)


def test_a_stack_keeps_its_key_and_replaces_a_revoked_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = prepare_state(tmp_path / "state")
    key = ensure_key(state)

    assert ensure_key(state) == key
    assert state.token.stat().st_mode & 0o777 == 0o600
    assert main(["token", "revoke", key.split("_")[1], "--state", str(state.root)]) == 0
    assert ensure_key(state) != key
    assert len(load_keys(state.keys).keys) == 2
    assert capsys.readouterr()

    state.keys.write_text("{")
    with pytest.raises(StateUnusable, match=r"keys\.json"):
        ensure_key(state)


class TestWhereCommandsFindTheKey:
    """The key of a local stack goes to that stack and to nobody else."""

    @pytest.fixture
    def state(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StateDirectory:
        monkeypatch.delenv("FAIRLEAD_TOKEN", raising=False)
        monkeypatch.delenv("FAIRLEAD_HTTP", raising=False)
        return prepare_state(tmp_path / "state")

    def token(self, state: StateDirectory, *options: str) -> str | None:
        parser = argparse.ArgumentParser()
        add_http(parser)
        token = gateway_of(parser.parse_args(["--state", str(state.root), *options])).token
        return token.read_text().strip() if isinstance(token, Path) else cast("str | None", token)

    def test_the_option_wins_over_the_variable_and_the_variable_over_the_file(
        self, state: StateDirectory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        key = ensure_key(state)
        with lock_state(state):
            save_addresses(state, {"http": "http://127.0.0.1:1"})

            assert self.token(state) == key
            assert self.token(state, "--http", "http://127.0.0.1:1/") == key
            monkeypatch.setenv("FAIRLEAD_TOKEN", "from-variable")
            assert self.token(state) == "from-variable"
            assert self.token(state, "--token", "given") == "given"

    def test_another_server_never_gets_the_key_of_the_local_stack(
        self, state: StateDirectory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ensure_key(state)
        with lock_state(state):
            save_addresses(state, {"http": "http://127.0.0.1:1"})

            assert self.token(state, "--http", "http://evil.example") is None
            monkeypatch.setenv("FAIRLEAD_HTTP", "http://evil.example")
            assert self.token(state) is None
