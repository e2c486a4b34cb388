"""`fairlead init`: finds a model to use, tries it with one small call, writes `fairlead.toml`."""

import argparse
import asyncio
import os
import sys
import tomllib
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final

from rich.markup import escape

from fairlead_cli.command_line.module_loader import keep_modules
from fairlead_cli.errors import CommandError, UsageError
from fairlead_cli.first_use.config_text import commented_text
from fairlead_cli.first_use.found_provider import FoundProvider, find_keys, provider_address
from fairlead_cli.first_use.local_servers import find_servers
from fairlead_cli.first_use.trial_answer import TrialAnswer, TrialFailed
from fairlead_cli.json_output import print_json
from fairlead_cli.options.stack import CONFIG_FILE
from fairlead_cli.terminal import shorten, stderr_console, stdout_console
from fairlead_schema.catalog import ModelRef
from fairlead_service.config.configuration import Config
from fairlead_service.presets.preset import PRESETS, suggest
from fairlead_service.presets.preset_tables import model_table, suggest_model

ANSWERS_MAX: Final = 3
MODELS_SHOWN_MAX: Final = 5


def run(args: argparse.Namespace) -> int:
    """Write the file only after the model has answered, so that a file means it works."""
    out = stderr_console() if args.json else stdout_console()
    file: Path = args.config
    if file.exists() and not args.force:
        raise CommandError(
            f"{file} exists already: --force replaces it, --config FILE writes another file"
        )
    _check_place(file)
    found = choose_provider(args, (*find_keys(os.environ), *find_servers(os.environ)))
    model = choose_model(found, args.model)
    out.print(f"[dim]found[/]  {found.preset.label}: {escape(found.origin)}", soft_wrap=True)
    text = commented_text(found, model)
    config = Config.model_validate(tomllib.loads(text))
    ref = ModelRef(provider_id=found.preset.name, id=model)
    answer = None
    if not args.no_call:
        stderr_console().print(f"asking {model} for one word", style="dim", markup=False)
        answer = _try(config, found, ref)
        out.print(f"[dim]asked[/]  {escape(model)}: {_answer_line(answer)}", soft_wrap=True)
    _write(file, text)
    out.print(f"[dim]wrote[/]  {escape(str(file))}", soft_wrap=True)
    if args.json:
        cost = None if answer is None else answer.cost
        print_json({"file": str(file), "model": f"{ref.provider_id}/{ref.id}", "cost": cost})
        return 0
    option = "" if file == CONFIG_FILE else f" --config {file}"
    out.print(f"\nNext: [bold]fairlead up{escape(option)}[/], and in another terminal:")
    out.print('      [bold]fairlead prompt "Say hello"[/]')
    return 0


def choose_provider(args: argparse.Namespace, found: tuple[FoundProvider, ...]) -> FoundProvider:
    """The provider that an option names, else the only one, else the one that the person chooses."""
    if args.provider is not None:
        return _named_provider(args.provider, found)
    of_model = (args.model or "").partition("/")[0]
    for each in found:
        if each.preset.name == of_model:
            return each
    if not found:
        keys = ", ".join(preset.key_env for preset in PRESETS.values() if preset.key_env)
        servers = ", ".join(preset.label for preset in PRESETS.values() if preset.is_local)
        raise CommandError(
            f"no key and no local model server found: set one of {keys}, or start one of"
            f" {servers}; `fairlead up --sim` needs neither"
        )
    if len(found) == 1 or args.yes:
        return found[0]
    if not sys.stdin.isatty():
        names = ", ".join(each.preset.name for each in found)
        raise UsageError(
            f"found {names}: choose with --provider NAME, or take the first with --yes"
        )
    return _ask(found)


def choose_model(found: FoundProvider, wanted: str | None) -> str:
    """The model of the option, else the usual one. Raises UsageError, CommandError."""
    preset, served = found.preset, tuple(model.id for model in found.served)
    name = wanted or found.default_model
    if name is None:
        raise CommandError(f"{preset.label} at {found.base_url} has no model yet: load one there")
    name = name.removeprefix(f"{preset.name}/")
    known = name in served if preset.is_local else model_table(preset, name) is not None
    if not known:
        meant = suggest_model(None if preset.is_local else preset.name, name, served)
        others = ", ".join(served[:MODELS_SHOWN_MAX])
        listed = (
            f"it has {others}" if others else f"`fairlead models --all {preset.name}` lists them"
        )
        raise UsageError(
            f"{preset.label} has no model {name!r} that is known here{meant or f'; {listed}'}"
        )
    return name


def _named_provider(name: str, found: tuple[FoundProvider, ...]) -> FoundProvider:
    preset = PRESETS.get(name)
    if preset is None:
        choices = suggest(name, PRESETS) or f"; choose from {', '.join(PRESETS)}"
        raise UsageError(f"--provider {name} is unknown{choices}")
    chosen = next((each for each in found if each.preset is preset), None)
    if chosen is not None:
        return chosen
    if preset.key_env:
        raise CommandError(f"{preset.label} needs a key: set {preset.key_env}")
    address = provider_address(preset, os.environ)
    raise CommandError(f"{preset.label} does not answer at {address}: start it and try again")


def _ask(found: tuple[FoundProvider, ...]) -> FoundProvider:
    notes = stderr_console()
    for number, each in enumerate(found, 1):
        notes.print(f"  {number}  {each.preset.label}: {escape(each.origin)}", soft_wrap=True)
    for _ in range(ANSWERS_MAX):
        try:
            answer = input("Which one? [1] ").strip() or "1"
        except EOFError:
            break
        names = {each.preset.name: each for each in found}
        if answer in names:
            return names[answer]
        if answer.isdecimal() and 1 <= int(answer) <= len(found):
            return found[int(answer) - 1]
    raise UsageError("no provider chosen: name one with --provider")


def _try(config: Config, found: FoundProvider, ref: ModelRef) -> TrialAnswer:
    with keep_modules():
        from fairlead_cli.first_use.trial_call import call_once  # noqa: PLC0415
    try:
        return asyncio.run(call_once(config, found, ref))
    except TrialFailed as error:
        raise TrialFailed(f"{error}. Nothing was written (--no-call writes anyway)") from error


def _answer_line(answer: TrialAnswer) -> str:
    used = answer.used
    counts = f"{used.input + used.cache.read + used.cache.write} tokens in,"
    counts += f" {used.output + used.reasoning} out"
    said = escape(f'"{shorten(answer.text, 40)}"')
    return f"{said} in {answer.took_s:.1f} s for ${answer.cost:.6f} ({counts})"


def _check_place(file: Path) -> None:
    """Refuse a file that cannot be written, before a call costs money. Raises CommandError."""
    try:
        with file.open("ab") if file.exists() else TemporaryFile(dir=file.parent):
            pass
    except OSError as error:
        raise _unwritable(file, error) from error


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text)
    except OSError as error:
        raise _unwritable(file, error) from error


def _unwritable(file: Path, error: OSError) -> CommandError:
    return CommandError(
        f"{file} cannot be written: {error.strerror} (--config FILE names another place)"
    )
