"""The text of a `fairlead.toml` for one provider."""

import json
from typing import Final

from fairlead_cli.first_use.found_provider import FoundProvider

GENERATED: Final = "# Written by `fairlead up`: the next start may write it again.\n"


def generated_text(found: FoundProvider) -> str:
    """The configuration of a stack that has no file: the provider and its default models."""
    return f"{GENERATED}{_models(found, str(found.default_model))}\n{_provider(found)}"


def commented_text(found: FoundProvider, model: str) -> str:
    """A file for people, with the settings that they look for first."""
    preset = found.preset
    key = (
        f"# The key is in the variable {preset.key_env}; only the runner gets it.\n"
        if preset.key_env
        else "# A server on this machine: no key, and nothing to pay.\n"
    )
    return f"""\
# Fairlead reads this file at its start. Every key: docs/configuration.md
# `fairlead models` lists what can be used here.

# The model of sessions that name none{", and the one that finds titles" if preset.small else ""}.
{_models(found, model)}
# What tools may do without a question. The last rule that fits decides.
# permissions = [{{ action = "bash", resource = "git push *", effect = "ask" }}]

{key}{_provider(found)}{_section(found, model)}
# Directories that sessions may use. Without them: the directory of `fairlead up`.
# [location]
# roots = ["/srv/projects"]

# All sessions together stop when they have cost so much, in USD.
# [tenant.default]
# cost = 20.0
"""


def _models(found: FoundProvider, model: str) -> str:
    name, small = found.preset.name, found.preset.small
    lines = f"default_model = {_quote(f'{name}/{model}')}\n"
    return lines + (f"small_model = {_quote(f'{name}/{small}')}\n" if small else "")


def _provider(found: FoundProvider) -> str:
    preset = found.preset
    address = f"base_url = {_quote(found.base_url)}\n"
    head = f"[provider.{preset.name}]\npreset = {_quote(preset.name)}\n"
    return head + ("" if found.is_at_usual_address else address)


def _section(found: FoundProvider, model: str) -> str:
    """The model's own section: a comment for hosted models, the window for those of a server."""
    head = f"[provider.{found.preset.name}.model.{_quote(model)}]\n"
    if not found.preset.is_local:
        return (
            "\n# Windows and prices of models are known. Values in a section stand over them.\n"
            f"# {head}# cost = {{ input = 2.0, output = 8.0 }}\n"
        )
    context = next((each.context for each in found.served if each.id == model), 0)
    if context:
        return f"\n{head}context = {context}\n"
    return (
        "\n# The window that the server gives this model: then Fairlead compacts in time.\n"
        f"# {head}# context = 32_768\n"
    )


def _quote(text: str) -> str:
    """A basic string of TOML: JSON's escapes are a part of its escapes."""
    return json.dumps(text, ensure_ascii=False)
