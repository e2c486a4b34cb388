"""The configuration of a stack."""

import stat
import tomllib
from pathlib import Path

import pytest

from fairlead_cli.embedded.configuration import choose_config
from fairlead_cli.embedded.nats import NatsServer
from fairlead_cli.embedded.state_directory import StateDirectory
from fairlead_service.config.configuration import ConfigError

PROVIDER_CONFIG = """
[provider.acme]
protocol = "anthropic-messages"
base_url = "http://127.0.0.1:9000"

[provider.acme.model.fast]
context = 1000
"""


def test_without_a_file_the_simulated_provider_is_the_default(tmp_path: Path) -> None:
    stack_config = choose_config(
        tmp_path / "made.toml", config_path=None, sim=True, env={}, cwd=tmp_path
    )

    sim = stack_config.config.provider["sim"]
    assert stack_config.config.default_model == "sim/fast"
    assert sim.protocol == "openai-chat"
    assert sim.base_url == f"http://127.0.0.1:{stack_config.sim_port}"
    assert stack_config.config.location.default == str(tmp_path)
    assert stack_config.config.location.roots == ()


def test_a_given_file_is_used_as_it_is(tmp_path: Path) -> None:
    config_file = tmp_path / "given.toml"
    config_file.write_text(PROVIDER_CONFIG)

    stack_config = choose_config(
        tmp_path / "made.toml", config_path=config_file, sim=False, env={}, cwd=tmp_path
    )

    assert (stack_config.path, stack_config.sim_port) == (config_file, None)
    assert not (tmp_path / "made.toml").exists()


def test_the_simulated_provider_joins_a_given_file(tmp_path: Path) -> None:
    config_file = tmp_path / "given.toml"
    config_file.write_text(f'default_model = "acme/fast"\n{PROVIDER_CONFIG}')

    stack_config = choose_config(
        tmp_path / "made.toml", config_path=config_file, sim=True, env={}, cwd=tmp_path
    )

    assert stack_config.config.default_model == "acme/fast"
    assert set(stack_config.config.provider) == {"acme", "sim"}
    assert stat.S_IMODE(stack_config.path.stat().st_mode) == 0o600


def test_a_given_file_without_a_default_gets_the_simulated_one(tmp_path: Path) -> None:
    config_file = tmp_path / "given.toml"
    config_file.write_text(PROVIDER_CONFIG)

    stack_config = choose_config(
        tmp_path / "made.toml", config_path=config_file, sim=True, env={}, cwd=tmp_path
    )

    assert stack_config.config.default_model == "sim/fast"


def test_a_file_that_has_its_own_simulated_provider_says_where_it_listens(tmp_path: Path) -> None:
    config_file = tmp_path / "given.toml"
    config_file.write_text(PROVIDER_CONFIG.replace("acme", "sim"))

    stack_config = choose_config(
        tmp_path / "made.toml", config_path=config_file, sim=True, env={}, cwd=tmp_path
    )

    assert (stack_config.path, stack_config.sim_port) == (config_file, 9000)


def test_a_broken_file_is_named_with_its_key(tmp_path: Path) -> None:
    config_file = tmp_path / "given.toml"
    config_file.write_text("[runner]\nturns_max = 0\n")

    with pytest.raises(ConfigError, match=r"given\.toml: runner\.turns_max: "):
        choose_config(
            tmp_path / "made.toml", config_path=config_file, sim=False, env={}, cwd=tmp_path
        )


def test_odd_directory_names_survive(tmp_path: Path) -> None:
    odd = tmp_path / 'a "quoted" name'

    stack_config = choose_config(
        tmp_path / "made.toml", config_path=None, sim=True, env={}, cwd=odd
    )

    assert tomllib.loads(stack_config.path.read_text())["location"]["default"] == str(odd)


@pytest.mark.parametrize(("relaxed", "sync"), [(False, "always"), (True, "2m")])
def test_nats_syncs_every_commit_unless_relaxed(
    relaxed: bool,  # noqa: FBT001 - a parameter of the test
    sync: str,
    tmp_path: Path,
) -> None:
    config = NatsServer(StateDirectory(tmp_path), 1, 2, relaxed=relaxed).config()

    assert f"sync_interval: {sync}" in config
    assert 'listen: "127.0.0.1:1"' in config
    assert "max_payload: 8MB" in config
