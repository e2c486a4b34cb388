"""A running stack gives each process its own secrets and its own role, and leaves no file elsewhere."""

from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest
import pytest_asyncio

from fairlead_cli.embedded.child_process import command_line
from fairlead_cli.embedded.running_stack import RunningStack
from fairlead_cli.embedded.stack import run_stack
from fairlead_projector.roles.names import GATEWAY, PROJECTOR

pytestmark = pytest.mark.integration

CONFIG = """
[provider.acme]
protocol = "openai-chat"
base_url = "http://127.0.0.1:1"
api_key_env = "PLANTED_PROVIDER_KEY"

[provider.acme.model.one]
context = 1000
output = 100

[mcp.away]
url = "http://127.0.0.1:1"
headers_from = { authorization = "PLANTED_MCP_TOKEN" }

[tools.websearch.find]
url = "http://127.0.0.1:1"
api_key_env = "PLANTED_SEARCH_KEY"
"""
# Each planted variable, and the processes that may have it.
PLANTED = {
    "PLANTED_PROVIDER_KEY": {"runner"},
    "PLANTED_MCP_TOKEN": {"tools"},
    "PLANTED_SEARCH_KEY": {"tools"},
    "PLANTED_CLOUD_KEY": set[str](),
    "FAIRLEAD_DSN_ADMIN": set[str](),
    "HTTPS_PROXY": {"runner"},
}
READS_POSTGRES = {"projector": PROJECTOR, "gateway": GATEWAY}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def up(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningStack]:
    place = tmp_path_factory.mktemp("secrets")
    config = place / "fairlead.toml"
    config.write_text(CONFIG)
    with pytest.MonkeyPatch.context() as patch:
        for name in PLANTED:
            patch.setenv(name, secret(name))
        patch.setenv("NO_PROXY", "127.0.0.1")
        async with run_stack(place / "state", config=config) as running:
            yield running


def secret(name: str) -> str:
    return f"http://planted:{name.lower()}@127.0.0.1:1"


def environment(pid: int) -> dict[str, str]:
    """The variables with which a process was started."""
    try:
        text = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
    except PermissionError:
        pytest.skip("services hide their environment from their own user; root sees it")
    return dict(line.split("=", 1) for line in text.split("\0") if "=" in line)


@pytest.mark.asyncio(loop_scope="module")
async def test_a_process_has_only_the_secrets_that_it_needs(up: RunningStack) -> None:
    """B3: `/proc/<worker>/environ` showed the keys of the providers to every command."""
    seen: dict[str, set[str]] = {name: set() for name in PLANTED}
    for process in up.processes:
        assert process.pid is not None
        values = "\0".join(environment(process.pid).values())
        for name, holders in seen.items():
            if secret(name) in values:
                holders.add(process.name)

    assert seen == PLANTED


@pytest.mark.asyncio(loop_scope="module")
async def test_only_two_services_reach_postgres_each_with_its_own_role(up: RunningStack) -> None:
    """B3, B16: every service had the administrator's address."""
    addresses = {
        process.name: dsn
        for process in up.processes
        if process.pid and (dsn := environment(process.pid).get("FAIRLEAD_POSTGRES_DSN"))
    }
    assert addresses.keys() == READS_POSTGRES.keys()
    for service, role in READS_POSTGRES.items():
        with psycopg.connect(addresses[service]) as connection:
            assert connection.info.user == role
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute("CREATE TABLE public.mine (n int)")


@pytest.mark.asyncio(loop_scope="module")
async def test_the_tools_service_keeps_its_files_in_the_state_directory(up: RunningStack) -> None:
    """D17: files of a stack stay inside `--state`."""
    pid = up.pid("tools")
    assert pid is not None
    env = environment(pid)

    assert env["FAIRLEAD_TOOLS_SPOOL_DIR"] == str(up.state.tools)
    assert env["FAIRLEAD_CONTEXT_CACHE"] == str(up.state.cache)
    assert env["FAIRLEAD_TOOLS_PRIVATE_DIRECTORIES"] == str(up.state.root)


@pytest.mark.asyncio(loop_scope="module")
async def test_no_password_is_in_an_environment_a_command_line_or_the_addresses(
    up: RunningStack,
) -> None:
    files = list(up.state.passwords.iterdir())
    passwords = [path.read_text().strip().rpartition(":")[2] for path in files]
    shown = [str(up.run_record())]
    for process in up.processes:
        assert process.pid is not None
        shown += [str(environment(process.pid)), command_line(process.pid) or ""]
        shown.append(up.log_path(process.name, process.index).read_text())

    assert len(passwords) == 4
    assert not any(password in text for password in passwords for text in shown)
