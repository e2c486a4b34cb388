"""Lays presets and model data below the providers of a configuration file."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fairlead_service.presets.model_data import find_model, model_names
from fairlead_service.presets.preset import PRESETS, Preset, suggest

_REACHED_BY: Final = frozenset({"protocol", "base_url"})


def complete_providers(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with every provider complete that has a preset. Raises ValueError.

    A provider has the preset that it names, or the preset of its own name if it says no protocol.
    """
    providers = settings.get("provider")
    if not isinstance(providers, Mapping):
        return dict(settings)
    completed = {
        name: _complete(name, table, settings) if isinstance(table, Mapping) else table
        for name, table in providers.items()
    }
    return {**settings, "provider": completed}


def model_table(
    preset: Preset, name: str, own: Mapping[str, Any] | None = None
) -> dict[str, Any] | None:
    """The section of a model: the file's `own` values over what is known.

    None: the file has no section, and nothing is known. A local server takes every name.
    """
    api_name = (own or {}).get("id", name)
    is_asked = preset.data is not None and isinstance(api_name, str)
    known = find_model(str(preset.data), api_name) if is_asked else None
    if known is None and own is None and not preset.is_local:
        return None
    bound = {"output": preset.output} if preset.output else {}
    return {**bound, **(known or {}), **(own or {})}


def suggest_model(preset: str | None, name: str, configured: tuple[str, ...]) -> str:
    """A question that names the model which was perhaps meant, or nothing."""
    data = None if preset is None else PRESETS[preset].data
    return suggest(name, (*configured, *(model_names(data) if data else ())))


def _complete(name: str, table: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    preset = _choose_preset(name, table)
    if preset is None:
        return dict(table)
    key = {"api_key_env": preset.key_env} if preset.key_env and not _has_key(table) else {}
    reached = {"preset": preset.name, "protocol": preset.protocol, "base_url": preset.base_url}
    return {**reached, **key, **table, "model": _models(name, preset, table, settings)}


def _choose_preset(name: str, table: Mapping[str, Any]) -> Preset | None:
    named = table.get("preset")
    if named is None:
        if name not in PRESETS and not _REACHED_BY & table.keys():
            raise ValueError(_unknown(f"provider.{name} needs a protocol, or a preset", name))
        return None if "protocol" in table else PRESETS.get(name)
    if not isinstance(named, str) or named not in PRESETS:
        raise ValueError(_unknown(f"provider.{name}.preset: {named!r} is unknown", str(named)))
    return PRESETS[named]


def _unknown(what: str, name: str) -> str:
    return f"{what}{suggest(name, PRESETS) or '; the presets are ' + ', '.join(PRESETS)}"


def _has_key(table: Mapping[str, Any]) -> bool:
    return not {"api_key_env", "api_key_file"}.isdisjoint(table)


def _models(
    name: str, preset: Preset, table: Mapping[str, Any], settings: Mapping[str, Any]
) -> object:
    """The sections of all models: those of the file, those that it names, those of the preset."""
    own = table.get("model", {})
    if not isinstance(own, Mapping):
        return own
    named = dict.fromkeys((*own, *preset.models, *_named_models(name, settings)))
    sections = {each: _section(preset, each, own.get(each)) for each in named}
    return {each: section for each, section in sections.items() if section is not None}


def _section(preset: Preset, name: str, own: object) -> object:
    if own is not None and not isinstance(own, Mapping):
        return own
    return model_table(preset, name, own)


def _named_models(provider: str, settings: Mapping[str, Any]) -> Iterator[str]:
    """The models of a provider that the top level, agents and commands name."""
    references = [settings.get("default_model"), settings.get("small_model")]
    for kind in ("agent", "command"):
        tables = settings.get(kind)
        values = tables.values() if isinstance(tables, Mapping) else ()
        references += [each.get("model") for each in values if isinstance(each, Mapping)]
    for reference in references:
        if isinstance(reference, str) and reference.startswith(f"{provider}/"):
            yield reference.removeprefix(f"{provider}/")
