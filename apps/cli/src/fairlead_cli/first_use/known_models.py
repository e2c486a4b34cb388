"""The models of a configuration, of the stack that runs here, or of what this machine has."""

import argparse
import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from rich.markup import escape

from fairlead_cli.embedded.state_directory import load_addresses
from fairlead_cli.errors import CommandError
from fairlead_cli.first_use.config_text import generated_text
from fairlead_cli.first_use.found_provider import find_keys
from fairlead_cli.first_use.local_servers import find_servers, list_models
from fairlead_cli.first_use.usable_model import UsableModel
from fairlead_cli.terminal import stderr_console
from fairlead_service.config.configuration import Config, load
from fairlead_service.config.providers import ModelConfig, ProviderConfig
from fairlead_service.presets.model_data import data_source, model_names
from fairlead_service.presets.preset import PRESETS
from fairlead_service.presets.preset_tables import model_table

FILE: Final = Path("fairlead.toml")


def known_models(args: argparse.Namespace) -> Iterator[UsableModel]:
    """The models that the arguments mean. Raises CommandError and ConfigError."""
    config, env = _load(args)
    for away in _servers_away(config):
        stderr_console().print(f"[yellow]![/] {escape(away)}", soft_wrap=True)
    return _usable_models(config, env, everything=args.all)


def _usable_models(
    config: Config, env: Mapping[str, str] | None, *, everything: bool
) -> Iterator[UsableModel]:
    """The models of each provider: configured, offered by a local server, and known.

    Without an environment nobody knows here which keys are set.
    """
    for name, provider in config.provider.items():
        key = provider.api_key_env
        is_missing = key and env is not None and not env.get(key, "").strip()
        missing = key if is_missing else None
        for id_, (model, source) in _models_of(provider, everything=everything).items():
            cost = model.cost
            label = f"{name}/{id_}"
            yield UsableModel(label, model.context, cost.input, cost.output, source, missing)


def _models_of(provider: ProviderConfig, *, everything: bool) -> dict[str, tuple[ModelConfig, str]]:
    models = {id_: (model, _source(provider, id_, model)) for id_, model in provider.model.items()}
    preset = PRESETS.get(provider.preset or "")
    if preset is None:
        return models
    if preset.is_local:
        for served in list_models(provider.base_url) or ():
            models.setdefault(served.id, (ModelConfig(context=served.context), "server"))
    elif everything:
        for id_ in model_names(preset.data or ""):
            known = provider.find_model(id_)
            if known is not None:
                models.setdefault(id_, (known, data_source()))
    return models


def _servers_away(config: Config) -> Iterator[str]:
    for name, provider in config.provider.items():
        preset = PRESETS.get(provider.preset or "")
        if preset is not None and preset.is_local and list_models(provider.base_url) is None:
            yield f"{name}: no model server answers at {provider.base_url}: start {preset.label}"


def _source(provider: ProviderConfig, id_: str, model: ModelConfig) -> str:
    """Who says window and price: the file, the data, or the file over the data."""
    preset = PRESETS.get(provider.preset or "")
    if preset is None or preset.data is None:
        return "file"
    known = model_table(preset, model.id or id_)
    if known is None:
        return "file"
    data = ModelConfig.model_validate(known)
    same = (model.context, model.cost) == (data.context, data.cost)
    return data_source() if same else f"file over {data_source()}"


def _load(args: argparse.Namespace) -> tuple[Config, Mapping[str, str] | None]:
    """The configuration of the option, the variable, this directory or the stack that runs here.

    Without any, what is found on this machine. The stack got its keys when it started.
    """
    file: Path | None = args.config
    if file is None and not os.environ.get("FAIRLEAD_CONFIG"):
        file = FILE if FILE.is_file() else None
        running = load_addresses(args.state).get("config")
        if file is None and running:
            return load(Path(running), os.environ), None
    config = load(file, os.environ)
    if config.provider:
        return config, os.environ
    found = (*find_keys(os.environ), *find_servers(os.environ))
    if not found:
        raise CommandError(
            "no provider is configured, no key is set, and no local model server answers:"
            " `fairlead init` says what it looks for, and `fairlead up --sim` needs none"
        )
    providers: dict[str, object] = {}
    for each in found:
        providers |= tomllib.loads(generated_text(each))["provider"]
    return Config.model_validate({"provider": providers}), os.environ
