"""The model data is what the locked package says, and our lookup answers as the package does."""

from datetime import UTC, date, datetime, time

import pytest

from fairlead_service.config.providers import Cost
from fairlead_service.presets.model_data import find_model
from fairlead_service.presets.preset import PRESETS, Preset
from tests.tidy.model_data import FILE, ROOT, build, is_offered, providers, rates

DAYS = [date(2025, 1, 1), date(2026, 11, 18), date(2027, 6, 1)]


def test_the_file_is_what_the_package_says() -> None:
    assert FILE.read_bytes() == build(), "run `make model-data`"


@pytest.mark.parametrize("day", DAYS, ids=str)
def test_every_model_has_the_price_that_the_package_would_charge(day: date) -> None:
    moment = datetime.combine(day, time(12), UTC)
    for id_, provider in providers().items():
        for model in provider.models:
            found = provider.find_model(model.id)
            if found is None or not is_offered(id_, found) or not is_offered(id_, model):
                continue
            entry = find_model(id_, model.id, day)
            assert entry is not None, model.id
            assert entry["cost"] == rates(found.get_prices(moment)), model.id
            Cost.model_validate(entry["cost"])


@pytest.mark.parametrize(
    ("provider", "name"),
    [
        ("anthropic", "claude-opus-4-5-20251101"),
        ("anthropic", "claude-sonnet-5-5-20260901"),
        ("openai", "gpt-5-2025-08-07"),
        ("google", "gemini-2.5-pro-preview-06-05"),
        ("google", "gemini-flash-latest"),
    ],
)
def test_dated_names_find_the_model_that_the_package_finds(provider: str, name: str) -> None:
    found = providers()[provider].find_model(name)
    entry = find_model(provider, name, DAYS[1])

    assert found is not None
    assert entry is not None
    assert entry["name"] == found.name


@pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS)
def test_every_preset_has_its_row(preset: Preset) -> None:
    quoted = [f"`{name}`" for name in (preset.name, preset.protocol, preset.base_url)]
    quoted.append(f"`{preset.key_env}`" if preset.key_env else "none")
    models = ", ".join(f"`{name}`" for name in preset.models) or "none"

    row = " | ".join((preset.label, *quoted, models))

    assert f"| {row} |" in (ROOT / "docs/configuration.md").read_text()
