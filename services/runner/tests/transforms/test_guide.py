"""The plugin of the guide runs as its page says."""

import re
import tomllib
from pathlib import Path

import pytest

from fairlead_schema.events import AttemptDispatched
from services.runner.tests.conftest import World, events_of

GUIDE = Path(__file__).parents[4] / "docs/guide/extending.md"


def block(language: str, marker: str) -> str:
    found = re.findall(rf"^```{language}\n(.*?)^```", GUIDE.read_text(), re.DOTALL | re.MULTILINE)
    (text,) = [text for text in found if marker in text]
    return str(text)


async def test_the_plugin_of_the_guide_sets_headers_and_parameters(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """P-20: with the package, the entry point and the configuration of the page."""
    project = tomllib.loads(block("ini", "entry-points"))["project"]
    ((group, points),) = project["entry-points"].items()
    (tmp_path / "acme_transforms.py").write_text(block("python", "def gateway"))
    info = tmp_path / f"acme_transforms-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n")
    lines = [f"{name} = {value}" for name, value in points.items()]
    (info / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines]))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("GATEWAY_TOKEN_DEFAULT", "hush-hush-token")
    world.config |= tomllib.loads(block("toml", "transform.gateway"))
    world.config["transform"]["gateway"]["timeout_ms"] = 10_000

    await world.prompt("msg_1", "hello")

    assert world.provider.headers[-1]["x-gateway-token"] == "hush-hush-token"
    assert world.provider.requests[-1]["temperature"] == 0.2
    (attempt,) = events_of(await world.events(), AttemptDispatched)
    assert [use.wire() for use in attempt.transforms or ()] == [
        {"name": "gateway", "version": "1.4.0", "outcome": "applied"}
    ]
    assert "hush-hush" not in caplog.text + str(await world.events())
