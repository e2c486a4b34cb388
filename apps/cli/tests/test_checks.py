"""The findings of `fairlead doctor`."""

import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fairlead_cli import checks
from fairlead_cli.__main__ import main
from fairlead_cli.deployment.doctor import monitor_findings, nats_findings
from fairlead_cli.embedded.ports import free_port
from fairlead_eventlog.condition.stream_sizes import StreamSize
from fairlead_eventlog.grants.key_directory import KeyDirectory
from fairlead_eventlog.replication import StreamCopies
from fairlead_service.config.configuration import Config
from fairlead_service.config.sections import ToolsConfig
from fairlead_testing.nats import Server
from fairlead_tools.shell import sandbox
from fairlead_tools.shell.confinement import ADVICE


def test_an_old_python_fails() -> None:
    assert checks.check_python((3, 10, 4)).status == "fail"
    assert checks.check_python((3, 11, 0)).status == "ok"


def test_missing_packages_are_named() -> None:
    finding = checks.check_packages(("fairlead", "fairlead-nonsense"))

    assert finding.status == "fail"
    assert "fairlead-nonsense" in finding.detail


@pytest.mark.parametrize(("free_mb", "status"), [(100, "fail"), (1000, "warn"), (50_000, "ok")])
def test_the_disk_is_judged_by_its_room(free_mb: int, status: str) -> None:
    assert checks.check_disk(Path("/x"), free_mb).status == status


@pytest.mark.parametrize(
    ("now", "detail"),
    [
        ("2026-11-18T13:00:00.123456789Z", "is 3,600 s ahead of"),
        ("2026-11-18T11:00:00Z", "is 3,600 s behind"),
        ("2026-11-18T12:00:02Z", "has the time of this machine"),
    ],
)
def test_a_clock_that_is_off_is_named(now: str, detail: str) -> None:
    here = datetime(2026, 11, 18, 12, tzinfo=UTC)

    finding = monitor_findings.check_clock({"server_name": "n1", "now": now}, here)

    assert detail in finding.detail
    assert (finding.status == "warn") is ("3,600" in detail)


@pytest.mark.parametrize(("used", "status"), [(79, "ok"), (80, "warn"), (100, "warn")])
def test_a_stream_that_fills_is_a_warning(used: int, status: str) -> None:
    """A10: well before it refuses. A stream without a limit never fills."""
    finding = nats_findings.check_room(
        [StreamSize("LOG-0", used, 100), StreamSize("DEAD", 10**9, 0)]
    )

    assert finding.status == status
    assert ("LOG-0" in finding.detail) is (status == "warn")


def test_a_port_of_our_own_stack_is_well() -> None:
    finding = checks.check_http_port(1, 4711, {"http": "http://127.0.0.1:1"})

    assert finding.status == "ok"
    assert "4711" in finding.detail


def test_a_broken_configuration_says_file_key_and_reason(tmp_path: Path) -> None:
    path = tmp_path / "fairlead.toml"
    path.write_text("[gateway]\nport = 'x'\n")

    finding, config = checks.check_configuration(path, {})

    assert (finding.status, config) == ("fail", None)
    assert str(path) in finding.detail
    assert "gateway.port" in finding.detail
    assert "valid integer" in finding.detail


def test_a_key_that_is_not_set_is_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "fairlead.toml"
    path.write_text(
        '[provider.acme]\nprotocol = "gemini"\nbase_url = "http://h"\napi_key_env = "ACME_KEY"\n'
    )

    without, _ = checks.check_configuration(path, {})
    with_key, _ = checks.check_configuration(path, {"ACME_KEY": "k"})

    assert (without.status, with_key.status) == ("warn", "ok")
    assert "ACME_KEY" in without.detail


@pytest.mark.parametrize(
    ("env", "status", "words"),
    [
        ({}, "warn", "no configuration file"),
        ({"OPENAI_API_KEY": " "}, "warn", "no configuration file"),
        (
            {"OPENAI_API_KEY": "k"},
            "ok",
            "`fairlead up` uses openai/gpt-6.1-sol with the key in OPENAI",
        ),
        ({"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "x"}, "fail", "OPENAI_BASE_URL must be"),
    ],
)
def test_without_a_file_the_doctor_says_what_up_would_use(
    env: dict[str, str], status: str, words: str
) -> None:
    finding, _ = checks.check_configuration(None, env)

    assert finding.status == status
    assert words in finding.detail


def test_a_server_that_does_not_sync_is_a_warning() -> None:
    assert (
        monitor_findings.check_durability({"jetstream": {"config": {"sync_always": True}}}).status
        == "ok"
    )
    assert monitor_findings.check_durability({"jetstream": {"config": {}}}).status == "warn"
    assert monitor_findings.check_durability({}).status == "warn"


COMPLETE = StreamCopies("LOG-0", 3, "n1", "fairlead")


@pytest.mark.parametrize(
    ("found", "status", "words"),
    [
        ([COMPLETE], "ok", "3 copies of each stream"),
        ([COMPLETE, replace(COMPLETE, behind=("n2",))], "warn", "n2: away"),
        ([COMPLETE, replace(COMPLETE, copies=1)], "warn", "1 streams have one copy"),
        ([COMPLETE, StreamCopies("WAKES")], "fail", "1 streams have no leader (WAKES"),
    ],
)
def test_copies_are_judged_by_their_leaders_and_their_lag(
    found: list[StreamCopies], status: str, words: str
) -> None:
    finding = nats_findings.check_copies(found)

    assert finding is not None
    assert finding.status == status
    assert words in finding.detail


def test_a_single_server_needs_no_copies() -> None:
    assert nats_findings.check_copies([StreamCopies("LOG-0", 1, "n1")]) is None


@pytest.mark.parametrize(("level", "status"), [(0, "warn"), (1, "ok"), (2, "fail")])
def test_the_format_that_was_finalised_is_compared_with_this_release(
    level: int, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nats_findings, "LEVEL_NEWEST", 1)

    finding = nats_findings.check_format(level)

    assert finding.status == status
    assert str(level) in finding.detail


def test_commands_without_a_sandbox_are_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    """B3: and where a sandbox is required, a failure."""
    monkeypatch.setattr(sandbox, "PROGRAM", "no-such-program")

    loose = checks.check_sandbox(Config())
    assert (loose.status, loose.mend) == ("warn", ADVICE)
    assert "permissions are consent, not confinement" in loose.detail
    strict = checks.check_sandbox(Config(tools=ToolsConfig(sandbox="bwrap")))
    assert (strict.status, strict.mend) == ("fail", "install bubblewrap")


def test_the_doctor_fails_when_a_configured_server_is_away(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "fairlead.toml"
    path.write_text(f'[postgres]\ndsn = "host=127.0.0.1 port={free_port()} user=nobody"\n')

    code = main(["doctor", "--json", "--config", str(path), "--state", str(tmp_path / "none")])

    # The binary and the server share a name; the finding of the server comes later.
    findings = {f["name"]: f for f in map(json.loads, capsys.readouterr().out.splitlines())}
    assert code == 1
    assert findings["postgres"]["status"] == "fail"
    assert findings["python"]["status"] == "ok"
    assert findings["config"]["status"] == "ok"


@pytest.mark.integration
@pytest.mark.parametrize(
    ("key", "detail", "mend"),
    [
        (None, "refused a connection without nats.nkey_file", "take the key from the directory"),
        ("missing", "cannot be used: No such file", "correct nats.nkey_file"),
        ("stranger", "refused the key in nats.nkey_file", "reload nats-server"),
        ("gateway", "refused a subject to this key", "set nats.nkey_file to operator.nk"),
        ("operator", "streams are missing", "run `fairlead provision`"),
    ],
)
def test_the_doctor_says_which_credential_is_wrong_and_what_to_do(
    key: str | None, detail: str, mend: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """B8: a missing key, a key of nobody and the key of another identity have different cures."""
    keys, strangers = KeyDirectory(tmp_path / "keys"), KeyDirectory(tmp_path / "strangers")
    keys.write(())
    strangers.write(())
    shutil.copy(strangers.seed_file("operator"), keys.seed_file("stranger"))
    server = Server(tmp_path, free_port(), more='include "keys/auth.conf"')
    server.start()
    seed = "" if key is None else f'nkey_file = "{keys.seed_file(key)}"'
    path = tmp_path / "fairlead.toml"
    path.write_text(f'[nats]\nurl = "{server.url}"\n{seed}\n')
    try:
        code = main(["doctor", "--json", "--config", str(path), "--state", str(tmp_path / "none")])
    finally:
        server.kill()

    findings = {f["name"]: f for f in map(json.loads, capsys.readouterr().out.splitlines())}
    assert code == 1
    assert detail in findings["nats"]["detail"]
    assert mend in findings["nats"]["mend"]
