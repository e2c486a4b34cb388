"""The parts of a solo process: the settings of each, and how it is built."""

import json
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias, cast

from starlette.applications import Starlette

import fairlead_gateway.app
import fairlead_hooks.app
import fairlead_ingest.app
import fairlead_projector.app
import fairlead_runner.app
import fairlead_tools.app
from fairlead_cli.solo.settings_variable import SETTINGS_VARIABLE
from fairlead_eventlog.grants.services import ServiceIdentity
from fairlead_eventlog.jetstream.local_requests import LocalRequests, LocalResponders
from fairlead_gateway.settings import GatewaySettings
from fairlead_hooks.settings import HooksSettings
from fairlead_ingest.settings import IngestSettings
from fairlead_projector.settings import ProjectorSettings
from fairlead_runner.settings import RunnerSettings
from fairlead_service.config.configuration import Config, load
from fairlead_tools.settings import ToolsSettings

Build: TypeAlias = Callable[[Config, LocalRequests], Starlette]

PARTS: Final[Mapping[ServiceIdentity, Build]] = {
    "ingest": lambda config, local: fairlead_ingest.app.build(IngestSettings(config), local),
    "projector": lambda config, local: fairlead_projector.app.build(
        ProjectorSettings.of(config), local
    ),
    "tools": lambda config, local: fairlead_tools.app.build(ToolsSettings(config), local),
    "runner": lambda config, local: fairlead_runner.app.build(RunnerSettings(config), local),
    "hooks": lambda config, local: fairlead_hooks.app.build(HooksSettings(config), local),
    "gateway": lambda config, local: fairlead_gateway.app.build(GatewaySettings.of(config), local),
}


def parse_settings(env: Mapping[str, str]) -> dict[ServiceIdentity, Config]:
    """The configuration of each part. Raises ConfigError.

    Each part has its own identity on NATS and its own role in Postgres, as a process of its own has.
    """
    variables = json.loads(env[SETTINGS_VARIABLE])
    return {name: load(None, cast("Mapping[str, str]", variables[name])) for name in PARTS}


def build_parts(configs: Mapping[ServiceIdentity, Config]) -> dict[str, Starlette]:
    """The applications of all parts, which ask each other without NATS. Raises ConfigError."""
    responders = LocalResponders()
    return {
        name: build(configs[name], responders.requests_of(name)) for name, build in PARTS.items()
    }
