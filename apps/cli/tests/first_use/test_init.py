"""`fairlead init`: from a key or a local server to a file that works, and sentences when it cannot."""

import io
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import httpx
import pytest
from typing_extensions import override

from fairlead_cli.__main__ import main
from fairlead_cli.first_use.call_failure import explain_failure
from fairlead_cli.first_use.found_provider import FoundProvider
from fairlead_llm.failure import new_failure
from fairlead_schema.catalog import ModelRef
from fairlead_schema.provider.events import FailureKind, ProviderFailure
from fairlead_service.config.configuration import load
from fairlead_service.presets.preset import PRESETS, Preset

ServeModels: TypeAlias = Callable[[object], str]

FILE = Path("fairlead.toml")
HOSTED = [preset for preset in PRESETS.values() if preset.key_env]


class Terminal(io.StringIO):
    """Standard input of a person who types these lines."""

    @override
    def isatty(self) -> bool:
        return True


def give_key(
    monkeypatch: pytest.MonkeyPatch, url: str, *names: str, key: str = "right-key"
) -> None:
    for name in names:
        preset = PRESETS[name]
        assert preset.key_env
        monkeypatch.setenv(preset.key_env, key)
        monkeypatch.setenv(preset.base_url_env, url)


def refusal(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """The one line of a command that fails."""
    assert main(["init", *argv]) in {1, 2}
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("fairlead: ")
    return error


@pytest.mark.parametrize("preset", HOSTED, ids=lambda preset: preset.name)
def test_a_key_becomes_a_file_after_one_call_that_says_its_cost(
    preset: Preset,
    sim: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    give_key(monkeypatch, sim, preset.name)

    assert main(["init"]) == 0

    said = capsys.readouterr().out
    assert f"the key in {preset.key_env}" in said
    assert f"asked  {preset.default}:" in said
    assert " for $0.0" in said
    assert "tokens in" in said
    assert "right-key" not in said + FILE.read_text()
    config = load(FILE, {})
    assert config.default_model == f"{preset.name}/{preset.default}"
    assert config.provider[preset.name].base_url == sim
    assert config.models()[0][1].cost.input > 0


def test_the_usual_address_is_left_to_the_preset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")

    assert main(["init", "--no-call", "--model", "gpt-5"]) == 0

    assert "base_url" not in FILE.read_text()
    assert load(FILE, {}).default_model == "openai/gpt-5"


@pytest.mark.parametrize("name", ["openai", "ollama"])
def test_the_settings_in_comments_work_when_they_are_uncommented(
    name: str, serve_models: ServeModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("OLLAMA_BASE_URL", serve_models({"data": [{"id": "qwen3:8b"}]}))
    assert main(["init", "--no-call", "--provider", name]) == 0

    text = re.sub(r"(?m)^# (?=\[|\w+ = )", "", FILE.read_text())
    FILE.write_text(text)

    config = load(FILE, {})
    (_, model), *_ = config.models()
    assert (model.cost.output, model.context) in {(8.0, 1_050_000), (0, 32_768)}
    assert config.permissions
    assert config.location.roots == ("/srv/projects",)
    assert config.tenant["default"].cost == 20.0


def test_a_local_server_becomes_a_file_with_its_window(
    serve_models: ServeModels,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    models = [{"id": "nomic-embed"}, {"id": 'odd "name":8b', "max_model_len": 40_960}]
    url = serve_models({"object": "list", "data": models})
    monkeypatch.setenv("VLLM_BASE_URL", url)

    assert main(["init"]) == 0

    assert "for $0.000000" in capsys.readouterr().out
    ref = ModelRef(provider_id="vllm", id='odd "name":8b')
    config = load(FILE, {})
    model = config.model(ref)
    assert config.model_ref() == ref
    assert model is not None
    assert model.context == 40_960


@pytest.mark.parametrize(
    "answer", [b"not json", b"", [], {"data": 7}, {"error": "x"}, b"[" * 100_000, b"x" * 2_000_000]
)
def test_what_is_no_model_server_is_not_found(
    answer: object,
    serve_models: ServeModels,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("OLLAMA_BASE_URL", serve_models(answer))

    assert "no key and no local model server found" in refusal(capsys)


def test_an_address_elsewhere_is_never_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OLLAMA_BASE_URL", "http://192.0.2.1:11434/v1")

    assert "does not answer at http://192.0.2.1" in refusal(capsys, "--provider", "ollama")


def test_a_server_without_models_says_what_is_missing(
    serve_models: ServeModels,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("OLLAMA_BASE_URL", serve_models({"object": "list", "data": None}))

    assert "has no model yet: load one there" in refusal(capsys)


def test_a_refused_key_is_named_and_nothing_is_written(
    sim: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    give_key(monkeypatch, sim, "anthropic", key="wrong-key-1234")

    line = refusal(capsys, "--yes")

    assert f"Anthropic at {sim} refused the key in ANTHROPIC_API_KEY (401)" in line
    assert "Nothing was written" in line
    assert "wrong-key-1234" not in line
    assert not FILE.exists()


def test_an_address_without_a_server_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    give_key(monkeypatch, "http://127.0.0.1:9", "openai")

    assert "OpenAI does not answer at http://127.0.0.1:9" in refusal(capsys)


@pytest.mark.parametrize("url", ["ftp://x", "x", "http://user:pass@host", "http://[", "http://h:x"])
def test_an_address_that_cannot_be_used_is_refused(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    give_key(monkeypatch, url, "openai")

    line = refusal(capsys)

    assert "OPENAI_BASE_URL must be an address such as" in line
    assert "pass@" not in line


@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        (["--provider", "antropic"], "did you mean 'anthropic'?"),
        (["--provider", "zzz"], "choose from anthropic, openai"),
        (["--provider", "openai"], "OpenAI needs a key: set OPENAI_API_KEY"),
        (["--provider", "lmstudio"], "LM Studio does not answer at"),
        (["--model", "claude-sonet-5-5"], "did you mean 'claude-sonnet-5-5'?"),
        (["--model", "sonnet"], "did you mean 'claude-sonnet-5-5'?"),
        (["--model", "zzz"], "`fairlead models --all anthropic` lists them"),
    ],
)
def test_a_wrong_choice_is_answered_with_the_right_ones(
    argv: list[str],
    reason: str,
    sim: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    give_key(monkeypatch, sim, "anthropic")

    assert reason in refusal(capsys, *argv)


def test_a_file_that_exists_stays_unless_it_is_forced(
    sim: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    give_key(monkeypatch, sim, "anthropic")
    FILE.write_text("mine = true")

    assert "exists already: --force replaces it" in refusal(capsys, "--yes")
    assert FILE.read_text() == "mine = true"
    assert main(["init", "--config", "other.toml"]) == 0
    assert main(["init", "--force"]) == 0
    assert load(FILE, {}) == load(Path("other.toml"), {})


@pytest.mark.parametrize("file", ["missing/fairlead.toml", "/proc/fairlead.toml", "/dev/full/x"])
def test_a_file_that_cannot_be_written_is_said_before_a_call_costs_money(
    file: str, sim: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    give_key(monkeypatch, sim, "openai")

    assert f"{file} cannot be written" in refusal(capsys, "--config", file)
    assert httpx.get(f"{sim}/sim/calls").json()["total"] == 0


def test_the_provider_of_a_model_needs_no_option_of_its_own(
    sim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_key(monkeypatch, sim, "anthropic", "openai")

    assert main(["init", "--model", "openai/gpt-5"]) == 0
    assert load(FILE, {}).default_model == "openai/gpt-5"


def test_a_key_that_was_copied_badly_is_named_before_it_is_sent(
    sim: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    give_key(monkeypatch, sim, "anthropic", key="sk-one\nsk-two")

    line = refusal(capsys)

    assert "ANTHROPIC_API_KEY has a character that no key has" in line
    assert "sk-" not in line


def test_ctrl_c_while_modules_are_loaded_is_no_defect() -> None:
    """A library may turn the interrupt into an error of its own, so the interrupt waits."""
    program = """
import os, signal, sys
from fairlead_cli.command_line.module_loader import keep_modules
try:
    with keep_modules():
        os.kill(os.getpid(), signal.SIGINT)
        print("loaded", flush=True)
    print("not interrupted")
except KeyboardInterrupt:
    print("interrupted")
"""
    process = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )

    assert process.stdout.split() == ["loaded", "interrupted"]


def test_without_a_terminal_a_choice_must_be_named(
    sim: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    give_key(monkeypatch, sim, "openai", "gemini")
    monkeypatch.setattr("sys.stdin", io.StringIO())

    assert "found openai, gemini: choose with --provider NAME" in refusal(capsys)
    assert main(["init", "--yes"]) == 0
    assert load(FILE, {}).default_model == "openai/gpt-6.1-sol"


@pytest.mark.parametrize(
    ("typed", "chosen"), [("\n", "openai"), ("2\n", "gemini"), ("9\ngemini\n", "gemini")]
)
def test_a_person_chooses_among_several(
    typed: str, chosen: str, sim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_key(monkeypatch, sim, "openai", "gemini")
    monkeypatch.setattr("sys.stdin", Terminal(typed))

    assert main(["init"]) == 0
    assert str(load(FILE, {}).default_model).startswith(f"{chosen}/")


@pytest.mark.parametrize("typed", ["", "a\nb\nc\n"])
def test_a_person_who_chooses_nothing_gets_no_file(
    typed: str, sim: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    give_key(monkeypatch, sim, "openai", "gemini")
    monkeypatch.setattr("sys.stdin", Terminal(typed))

    assert "name one with --provider" in refusal(capsys)
    assert not FILE.exists()


@pytest.mark.parametrize(
    ("kind", "status", "part"),
    [
        ("auth", 401, "refused the key in OPENAI_API_KEY (401): no — check the key"),
        ("rate-limit", 429, "takes no more calls now (429): no — wait a little"),
        ("invalid-request", 404, "refused a call to x (404): no — choose another model"),
        ("network", None, "does not answer at https://api.openai.com/v1: no — check the network"),
        ("malformed-stream", None, "— check the network, and the address in OPENAI_BASE_URL"),
        ("unknown", 302, "as a provider does (302): no — check the network, and the address"),
        ("server-error", 500, "failed (500): no — try again"),
    ],
)
def test_every_failure_says_what_helps(kind: FailureKind, status: int | None, part: str) -> None:
    assert part in explained("openai", replace(new_failure(kind, "no"), status=status))


def test_an_account_without_credit_needs_credit_and_no_other_model() -> None:
    failure = replace(new_failure("rate-limit", "no credit"), retryable=False, status=400)

    line = explained("anthropic", failure)

    assert "— add credit to the account, or choose another provider with --provider" in line


def test_another_address_is_named_because_it_may_be_the_mistake() -> None:
    found = FoundProvider(PRESETS["openai"], "http://127.0.0.1:8080")
    ref = ModelRef(provider_id="openai", id="x")

    line = explain_failure(new_failure("invalid-request", "no"), found, ref, {})

    assert "OpenAI at http://127.0.0.1:8080 refused a call to x" in line
    assert "check the address in OPENAI_BASE_URL, or choose another model" in line


@pytest.mark.parametrize(
    ("name", "message", "env", "part"),
    [
        ("openai", "", {"HTTPS_PROXY": "http://p"}, "does not use HTTPS_PROXY: set proxy in [prov"),
        ("openai", "[SSL: CERTIFICATE_VERIFY_FAILED] no", {}, "set ca_file in [provider.openai]"),
        ("vllm", "", {"HTTPS_PROXY": "http://p"}, "start the server"),
    ],
)
def test_a_network_that_is_not_plain_gets_its_setting(
    name: str, message: str, env: dict[str, str], part: str
) -> None:
    assert part in explained(name, new_failure("network", message), env)


def test_a_local_server_that_is_slow_may_load_its_model() -> None:
    assert "may still load the model" in explained("ollama", new_failure("timeout", "slow"))


def explained(name: str, failure: ProviderFailure, env: Mapping[str, str] | None = None) -> str:
    found = FoundProvider(PRESETS[name], PRESETS[name].base_url)
    return explain_failure(failure, found, ModelRef(provider_id=name, id="x"), env or {})
