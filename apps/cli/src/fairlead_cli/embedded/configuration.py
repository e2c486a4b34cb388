"""Which configuration a stack runs with: the one it is given, or one for the simulated provider."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from fairlead_cli.embedded.ports import LOOPBACK, free_port
from fairlead_service.config.configuration import Config, load

SIM: Final = "sim"
SIM_MODEL: Final = "sim/fast"
# Each is named for its manner.
SIM_MODELS: Final = ("fast", "slow", "think")


@dataclass(frozen=True, slots=True)
class Chosen:
    """The configuration of one stack, and where its simulated provider listens."""

    path: Path
    config: Config
    sim_port: int | None


def choose(
    generated: Path, *, given: Path | None, sim: bool, env: Mapping[str, str], cwd: Path
) -> Chosen:
    """Check what was given; write what must be generated. Raises ConfigError."""
    if given is not None and not sim:
        return Chosen(given.absolute(), load(given, env), None)
    if given is None:
        port = free_port()
        _write(generated, f'default_model = "{SIM_MODEL}"\n{_provider(port)}{_location(cwd)}')
        return Chosen(generated, load(generated, env), port)
    config = load(given, env)
    if SIM in config.provider:
        named = urlsplit(config.provider[SIM].base_url).port
        return Chosen(given.absolute(), config, named or free_port())
    port = free_port()
    _write(generated, _extended(given.read_text(), config, port))
    return Chosen(generated, load(generated, env), port)


def _write(generated: Path, text: str) -> None:
    """For nobody else's eyes: a copied configuration may hold secrets in its headers."""
    generated.touch(mode=0o600)
    generated.chmod(0o600)
    generated.write_text(text)


def _extended(text: str, config: Config, port: int) -> str:
    """A given configuration with the simulated provider added, as default where it has none."""
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
    return f"\n[location]\nroots = [{json.dumps(str(cwd))}]\ndefault = {json.dumps(str(cwd))}\n"
