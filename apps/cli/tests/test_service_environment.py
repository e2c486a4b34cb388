"""Each process of a stack gets its own part of the environment, and no secret of another process."""

from pathlib import Path

import pytest

from fairlead_cli.embedded.service_environment import common_environment, service_environment
from fairlead_cli.service_names import SERVICES
from fairlead_service.config.configuration import Config, load

CONFIG = """
[provider.acme]
protocol = "openai-chat"
base_url = "http://127.0.0.1:1"
api_key_env = "ACME_API_KEY"

[mcp.files]
command = "files"
env_from = { TOKEN = "FILES_TOKEN" }

[mcp.remote]
url = "https://tools.example"
headers_from = { authorization = "REMOTE_TOKEN" }

[tenant.alpha.mcp.files]
env_from = { TOKEN = "ALPHA_FILES_TOKEN" }

[tools]
environment = ["BUILD_NUMBER"]

[tools.websearch.find]
url = "https://search.example"
api_key_env = "SEARCH_KEY"
"""
TOOL_VARIABLES = {"FILES_TOKEN", "REMOTE_TOKEN", "ALPHA_FILES_TOKEN", "BUILD_NUMBER", "SEARCH_KEY"}
SECRETS = {
    *TOOL_VARIABLES,
    *("ACME_API_KEY", "HTTPS_PROXY", "https_proxy", "FAIRLEAD_POSTGRES_DSN"),
    "FAIRLEAD_POSTGRES_MIGRATE_DSN",
    *("AWS_SECRET_ACCESS_KEY", "FAIRLEAD_TOKEN", "FAIRLEAD_DSN_ADMIN", "SSH_AUTH_SOCK"),
}
ENV = {
    "PATH": "/bin",
    "HOME": "/home/me",
    "LC_ALL": "C.UTF-8",
    "FAIRLEAD_LOG_LEVEL": "DEBUG",
    "FAIRLEAD_TOOLS_POOL": "main",
    "FAIRLEAD_DEFAULT_AGENT": "build",
} | dict.fromkeys(SECRETS, "secret")
SETTINGS = {"FAIRLEAD_LOG_LEVEL", "FAIRLEAD_TOOLS_POOL", "FAIRLEAD_DEFAULT_AGENT"}
OWN_SECRETS = {
    "ingest": set[str](),
    "projector": set[str](),
    "gateway": set[str](),
    "hooks": set[str](),
    "runner": {"ACME_API_KEY", "HTTPS_PROXY", "https_proxy"},
    "tools": TOOL_VARIABLES,
}


@pytest.fixture
def config(tmp_path: Path) -> Config:
    path = tmp_path / "fairlead.toml"
    path.write_text(CONFIG)
    return load(path, {})


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_gets_its_own_secrets_and_no_others(name: str, config: Config) -> None:
    """B3: every service had the whole environment, with all keys."""
    chosen = service_environment(name, ENV, config)

    assert chosen.keys() & SECRETS == OWN_SECRETS[name]


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_gets_the_common_variables_and_the_settings(name: str, config: Config) -> None:
    chosen = service_environment(name, ENV, config)

    assert chosen.keys() >= {"PATH", "HOME", "LC_ALL", *SETTINGS}


def test_a_process_without_settings_gets_no_secret() -> None:
    """B3: nats-server and the simulated provider need no key."""
    assert common_environment(ENV).keys() == {"PATH", "HOME", "LC_ALL"}
