"""`fairlead models`: the models that can be used here, with window, price and source."""

import argparse
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from rich.markup import escape

from fairlead_cli.embedded.state_directory import load_addresses
from fairlead_cli.errors import CommandError
from fairlead_cli.first_use.config_text import generated_text
from fairlead_cli.first_use.found_provider import find_keys
from fairlead_cli.first_use.local_servers import find_servers, list_models
from fairlead_cli.json_output import print_json_lines
from fairlead_cli.terminal import stderr_console, stdout_console, table
from fairlead_service.config.configuration import Config, load
from fairlead_service.config.providers import ModelConfig, ProviderConfig
from fairlead_service.presets.model_data import data_source, model_names
from fairlead_service.presets.preset import PRESETS
from fairlead_service.presets.preset_tables import model_table

FILE: Final = Path("fairlead.toml")


@dataclass(frozen=True, slots=True)
class UsableModel:
    """One line of the list. `missing` names the variable whose key is not set."""

    model: str
    context: int
    input: float
    output: float
    source: str
    missing: str | None = None


def run(args: argparse.Namespace) -> int:
    asks_gateway = bool(args.http or os.environ.get("FAIRLEAD_HTTP")) and args.config is None
    models = list(_offered_models(args) if asks_gateway else _known_models(args))
    wanted = args.filter.lower()
    models = [model for model in models if wanted in model.model.lower()]
    if args.json:
        print_json_lines(asdict(model) for model in models)
        return 0
    if not models:
        more = "" if args.all else "; --all lists every model that is known"
        raise CommandError(f"no model fits {args.filter!r}{more}")
    _show(models)
    return 0


def _offered_models(args: argparse.Namespace) -> Iterator[UsableModel]:
    """What the gateway has: its file and its keys are on another machine."""
    from fairlead_cli.first_use.gateway_models import load_models  # noqa: PLC0415

    for offered in load_models(args):
        label, rates = f"{offered.provider_id}/{offered.id}", offered.rates
        yield UsableModel(label, offered.limit.context, rates.input, rates.output, "gateway")


def _known_models(args: argparse.Namespace) -> Iterator[UsableModel]:
    config, env = _load(args)
    for away in _servers_away(config):
        stderr_console().print(f"[yellow]![/] {escape(away)}", soft_wrap=True)
    return usable_models(config, env, everything=args.all)


def usable_models(
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


def _show(models: list[UsableModel]) -> None:
    grid = table("MODEL", "WINDOW", "IN $/M", "OUT $/M", "SOURCE")
    for model in models:
        grid.add_row(
            escape(model.model),
            f"{model.context:,}" if model.context else "unknown",
            f"{model.input:g}",
            f"{model.output:g}",
            escape(model.source),
        )
    stdout_console().print(grid)
    for missing in sorted({model.missing for model in models if model.missing}):
        stderr_console().print(f"[yellow]![/] {missing} is not set: its models cannot be called")
