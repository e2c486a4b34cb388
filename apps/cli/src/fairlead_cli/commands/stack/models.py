"""`fairlead models`: the models that can be used here, with window, price and source."""

import argparse
import os
from dataclasses import asdict

from rich.markup import escape

from fairlead_cli.command_line.module_loader import keep_modules
from fairlead_cli.errors import CommandError
from fairlead_cli.first_use.usable_model import UsableModel
from fairlead_cli.json_output import print_json_lines
from fairlead_cli.terminal import stderr_console, stdout_console, table


def run(args: argparse.Namespace) -> int:
    asks_gateway = bool(args.http or os.environ.get("FAIRLEAD_HTTP")) and args.config is None
    models = _ask_gateway(args) if asks_gateway else _look_here(args)
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


def _ask_gateway(args: argparse.Namespace) -> list[UsableModel]:
    with keep_modules():
        from fairlead_cli.first_use.gateway_models import offered_models  # noqa: PLC0415
    return list(offered_models(args))


def _look_here(args: argparse.Namespace) -> list[UsableModel]:
    with keep_modules():
        from fairlead_cli.first_use.known_models import known_models  # noqa: PLC0415
    return list(known_models(args))


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
