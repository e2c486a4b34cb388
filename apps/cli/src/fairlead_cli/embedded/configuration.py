"""Chooses the configuration of a stack: the given file, or a generated one."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from fairlead_cli.embedded.ports import LOOPBACK, free_port
from fairlead_cli.embedded.private_files import write_private
from fairlead_cli.errors import StateUnusable
from fairlead_cli.first_use.config_text import GENERATED, generated_text
from fairlead_cli.first_use.found_provider import FoundProvider
from fairlead_service.config.configuration import Config, load

SIM: Final = "sim"
SIM_MODEL: Final = "sim/fast"
# The name of each model says how it behaves: see `sim/choice.py`.
SIM_MODELS: Final = ("fast", "slow", "think")


@dataclass(frozen=True, slots=True)
class StackConfig:
    """The configuration of one stack, and the port of its simulated provider."""

    path: Path
    config: Config
    sim_port: int | None


def choose_config(
    generated: Path,
    *,
    config_path: Path | None,
    sim: bool,
    env: Mapping[str, str],
    cwd: Path,
    found: FoundProvider | None = None,
) -> StackConfig:
    """Check the given file, or write one for the provider that was found, else for the simulation.

    Raises ConfigError.
    """
    if config_path is not None and not sim:
        return StackConfig(config_path.absolute(), load(config_path, env), None)
    if config_path is None and found is not None and not sim:
        _write(generated, f"{generated_text(found)}{_location(cwd)}")
        return StackConfig(generated, load(generated, env), None)
    if config_path is None:
        port = free_port()
        _write(generated, f'default_model = "{SIM_MODEL}"\n{_provider(port)}{_location(cwd)}')
        return StackConfig(generated, load(generated, env), port)
    config = load(config_path, env)
    if SIM in config.provider:
        sim_port = urlsplit(config.provider[SIM].base_url).port
        return StackConfig(config_path.absolute(), config, sim_port or free_port())
    port = free_port()
    _write(generated, _with_simulator(config_path.read_text(), config, port))
    return StackConfig(generated, load(generated, env), port)


def _write(generated: Path, text: str) -> None:
    """Write a file that only its owner reads: a copied configuration may contain secrets.

    Raises StateUnusable, if people wrote the file: `--state .` is often a project.
    """
    text_before = generated.read_text() if generated.exists() else GENERATED
    if GENERATED not in text_before and f"[provider.{SIM}]" not in text_before:
        raise StateUnusable(
            f"{generated} is not generated, and `fairlead up` would write its own file there:"
            " choose another directory with --state"
        )
    write_private(generated, text)


def _with_simulator(text: str, config: Config, port: int) -> str:
    """The given text with the simulated provider, as default model where the text names none."""
    default = "" if config.default_model else f'default_model = "{SIM_MODEL}"\n'
    return f"{default}{text}\n{_provider(port)}"


def _provider(port: int) -> str:
    return f"""
[provider.{SIM}]
protocol = "openai-chat"
base_url = "http://{LOOPBACK}:{port}"
{"".join(_model(name) for name in SIM_MODELS)}"""


def _model(name: str) -> str:
    return f"""
[provider.{SIM}.model.{name}]
context = 200_000
output = 8_192
cost = {{ input = 3.0, output = 15.0, cache_read = 0.3, cache_write = 3.75 }}
"""


def _location(cwd: Path) -> str:
    return f"\n[location]\ndefault = {json.dumps(str(cwd))}\n"
