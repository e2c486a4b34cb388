"""[[pool]] sections: the rules that they become, and the mistakes that are refused."""

from pathlib import Path
from typing import Any

import pytest

from fairlead_schema.tools.pool_rules import PoolRules
from fairlead_service.config.configuration import Config, ConfigError, load
from fairlead_service.locations import choose_pool, permitted_pools


def pools(*rules: dict[str, Any], worker: str | None = None) -> PoolRules:
    settings: dict[str, Any] = {"pool": list(rules)}
    if worker is not None:
        settings["tools"] = {"pool": worker}
    return Config.model_validate(settings).pools


def test_without_rules_there_is_the_pool_of_the_workers() -> None:
    assert pools().names == ("default",)
    assert pools(worker="mine").names == ("mine",)
    assert pools(worker="mine").choose("acme", "/srv") == "mine"


def test_a_last_rule_that_matches_all_names_the_default_pool() -> None:
    gpu = {"name": "gpu", "directories": ["/srv/gpu"]}

    assert pools(gpu).names == ("gpu", "default")
    assert pools(gpu, {"name": "main"}, worker="main").default == "main"


def test_a_link_leads_to_the_pool_of_its_place(tmp_path: Path) -> None:
    place, link = tmp_path / "gpu" / "x", tmp_path / "link"
    place.mkdir(parents=True)
    link.symlink_to(place)
    rules = pools({"name": "gpu", "directories": [str(tmp_path / "gpu")]})

    assert choose_pool(rules, "acme", str(link)) == "gpu"
    assert choose_pool(rules, "acme", f"{link}/../../other") == "default"
    assert permitted_pools(rules, "acme", str(link)) == ("gpu", "default")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('[[pool]]\nname = "a.b"', "pool.0.name"),
        ('[[pool]]\ndirectories = ["/x"]', "pool.0.name"),
        ('[[pool]]\nname = "a"\ndirectories = ["x"]', "no absolute path"),
        ('[[pool]]\nname = "a"\ndirectories = []', "an empty list matches nothing"),
        ('[[pool]]\nname = "a"\ntenants = []', "an empty list matches nothing"),
        ('[[pool]]\nname = "a"\ndirectory = "/x"', "no such setting"),
        ('[[pool]]\nname = "a"\n[[pool]]\nname = "b"', "rule 2 (b) is never used: rule 1 (a)"),
        (
            '[[pool]]\nname = "a"\ndirectories = ["/x"]\n[tools]\npool = "c"',
            "tools.pool 'c' is no pool; the pools are a, default",
        ),
    ],
)
def test_a_mistake_in_the_rules_names_its_cause(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "fairlead.toml"
    file.write_text(text)

    with pytest.raises(ConfigError) as refused:
        load(file, {})

    assert reason in str(refused.value)
