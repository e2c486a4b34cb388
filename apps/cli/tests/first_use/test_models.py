"""`fairlead models`: what can be used here, with window, price and source."""

import fcntl
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from apps.cli.tests.answering_server import AnsweringServer
from fairlead_cli.__main__ import main
from fairlead_service.presets.model_data import data_source

FILE = """
default_model = "anthropic/claude-opus-5"

[provider.anthropic.model.claude-sonnet-5-5]
cost = { input = 1.0, output = 2.0 }

[provider.anthropic.model.claude-next]
context = 5_000

[provider.acme]
protocol = "openai-chat"
base_url = "http://127.0.0.1:9"
[provider.acme.model.fast]
context = 1000
"""


def listed(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, dict[str, Any]]:
    assert main(["models", "--json", *argv]) == 0
    lines = map(json.loads, capsys.readouterr().out.splitlines())
    return {line["model"]: line for line in lines}


def test_every_model_says_who_knows_its_price(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "fairlead.toml").write_text(FILE)

    models = listed(capsys)

    data = data_source()
    assert {name: model["source"] for name, model in models.items()} == {
        "anthropic/claude-sonnet-5-5": f"file over {data}",
        "anthropic/claude-next": "file",
        "anthropic/claude-haiku-5-5": data,
        "anthropic/claude-opus-5": data,
        "acme/fast": "file",
    }
    assert models["anthropic/claude-opus-5"]["input"] == 5.0
    assert models["anthropic/claude-next"]["context"] == 5_000
    assert models["anthropic/claude-next"]["missing"] == "ANTHROPIC_API_KEY"
    assert models["acme/fast"]["missing"] is None


def test_all_models_that_the_data_knows_are_listed_on_request(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "fairlead.toml").write_text("[provider.openrouter]")

    assert len(listed(capsys)) == 2
    assert len(listed(capsys, "--all")) > 300
    assert set(listed(capsys, "--all", "GPT-6-sol")) == {"openrouter/openai/gpt-6-sol"}


def test_without_a_file_every_key_counts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("GEMINI_API_KEY", "k")

    assert {name.split("/")[0] for name in listed(capsys)} == {"openai", "gemini"}


def test_without_a_file_a_local_server_counts_too(
    serve_models: Callable[[object], str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("OLLAMA_BASE_URL", serve_models({"data": [{"id": "qwen3:8b"}]}))

    assert listed(capsys).keys() == {"ollama/qwen3:8b"}


def test_a_local_server_is_asked_for_its_models(
    place: Path,
    serve_models: Callable[[object], str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    url = serve_models({"data": [{"id": "qwen3:8b", "max_model_len": 4096}, {"id": 7}, None]})
    (place / "fairlead.toml").write_text(f'[provider.ollama]\nbase_url = "{url}"')

    model = listed(capsys)["ollama/qwen3:8b"]

    assert (model["context"], model["input"], model["source"]) == (4096, 0, "server")


def test_the_stack_that_runs_here_counts_with_its_keys(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second terminal of a person has no key, and needs none."""
    state = place / ".fairlead"
    state.mkdir()
    (state / "made.toml").write_text("[provider.openai]")
    (state / "run.json").write_text(json.dumps({"config": str(state / "made.toml")}))
    with (state / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        models = listed(capsys)

    assert {model["missing"] for model in models.values()} == {None}
    assert "openai/gpt-6.1-sol" in models


def test_a_gateway_is_asked_for_its_models(
    server: AnsweringServer, capsys: pytest.CaptureFixture[str]
) -> None:
    model = {"id": "fast", "providerID": "acme", "limit": {"context": 9}, "cost": [{"input": 2.0}]}
    server.answer({"data": [model, {"id": "bare", "providerID": "acme"}]})

    models = listed(capsys, "--http", server.url)

    assert models["acme/fast"] == {
        "model": "acme/fast",
        "context": 9,
        "input": 2.0,
        "output": 0.0,
        "source": "gateway",
        "missing": None,
    }
    assert models["acme/bare"]["context"] == 0


def test_a_table_is_for_people_and_names_what_is_missing(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    away = '[provider.vllm]\nbase_url = "http://127.0.0.1:9/v1"\n'
    (place / "fairlead.toml").write_text(f"[provider.openai]\n{away}")

    assert main(["models"]) == 0

    said = capsys.readouterr()
    assert "openai/gpt-6.1-sol" in said.out
    assert "1,050,000" in said.out
    assert "OPENAI_API_KEY is not set" in said.err
    assert "vllm: no model server answers at http://127.0.0.1:9/v1: start vLLM" in said.err


@pytest.mark.parametrize(
    ("text", "argv", "reason"),
    [
        (None, [], "`fairlead init` says what it looks for"),
        ("[provider.openai]", ["nonsense"], "no model fits 'nonsense'; --all lists"),
        ("[provider", [], "not valid TOML"),
        ("[provider.opnai]", [], "did you mean 'openai'?"),
    ],
)
def test_a_failure_is_one_line_that_helps(
    text: str | None,
    argv: list[str],
    reason: str,
    place: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if text is not None:
        (place / "fairlead.toml").write_text(text)

    assert main(["models", *argv]) == 1
    assert reason in capsys.readouterr().err.splitlines()[-1]


def test_help_reads_no_model_data() -> None:
    """Start-up stays quick: the data is read at the first question about a model."""
    script = (
        "import sys; from fairlead_cli.command_line.argument_parser import build_parsers; build_parsers('init');"
        "from fairlead_service.presets import model_data;"
        "print(model_data._load.cache_info().currsize, 'genai_prices' in sys.modules)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    assert answer.stdout.split() == ["0", "False"]
