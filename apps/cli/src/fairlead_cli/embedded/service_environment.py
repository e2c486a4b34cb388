"""The environment of each process: only the variables that this process needs, so no other's secrets."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

from fairlead_service.config.configuration import Config
from fairlead_service.config.tool_servers import Credentials
from fairlead_service.config.variables import find_variables

NamedVariables: TypeAlias = Callable[[Config], Iterable[str]]
"""Returns the names of the variables to which the configuration refers."""

# Every process: where programs and files are, and in which language and time zone people read.
COMMON: Final = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TZ", "TMPDIR", "XDG_RUNTIME_DIR"),
        *("LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_COLLATE", "LC_MESSAGES", "LC_TIME"),
        *("PYTHONPATH", "PYTHONHOME", "PYTHONUNBUFFERED", "LD_LIBRARY_PATH", "VIRTUAL_ENV"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR"),
    }
)
# A proxy's address may contain a password, and only calls to providers go through a proxy.
PROXIES: Final = frozenset(
    name
    for upper in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
    for name in (upper, upper.lower())
)
TRACES_PREFIX: Final = "OTEL_"
OF_SERVICE: Final[Mapping[str, frozenset[str]]] = {"runner": PROXIES}
# Settings are no secrets, so every service gets all of them, except the sections named here.
READERS_OF_SECTION: Final[Mapping[str, frozenset[str]]] = {
    "auth": frozenset({"gateway", "hooks"}),
    # The stack gives each service its own address of the embedded Postgres.
    "postgres": frozenset(),
}


def _provider_keys(config: Config) -> Iterable[str]:
    return (provider.api_key_env or "" for provider in config.provider.values())


def _tool_credentials(config: Config) -> Iterable[str]:
    servers: list[Credentials] = [*config.mcp.values()]
    for tenant in config.tenant.values():
        servers += tenant.mcp.values()
    for server in servers:
        yield from (*server.env_from.values(), *server.headers_from.values())
    for service in config.tools.websearch.values():
        yield service.api_key_env or ""
    yield from config.tools.environment


NAMED_FOR_SERVICE: Final[Mapping[str, NamedVariables]] = {
    "runner": _provider_keys,
    "tools": _tool_credentials,
}


def service_environment(name: str, env: Mapping[str, str], config: Config) -> dict[str, str]:
    """The part of an environment that one service gets."""
    named = NAMED_FOR_SERVICE.get(name, _nothing)(config)
    settings = (
        variable
        for key, variable in find_variables(env, Config).items()
        if name in READERS_OF_SECTION.get(key[0], {name})
    )
    wanted = COMMON | OF_SERVICE.get(name, frozenset()) | {*named, *settings}
    # The standard variables of OpenTelemetry: where each process sends its traces, and how.
    wanted |= {variable for variable in env if variable.startswith(TRACES_PREFIX)}
    return {variable: value for variable, value in env.items() if variable in wanted}


def common_environment(env: Mapping[str, str]) -> dict[str, str]:
    """The part of an environment for a process that needs no setting and no secret."""
    return {variable: value for variable, value in env.items() if variable in COMMON}


def _nothing(_config: Config) -> Iterable[str]:
    return ()
