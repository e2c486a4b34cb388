"""P-20: transforms of installed packages, found through their entry points."""

import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from fairlead_runner.transforms.plugins import THREADS_MAX, load_plugins
from fairlead_runner.transforms.transform import TransformFailed
from fairlead_schema.events import AttemptDispatched
from fairlead_service.config.configuration import Config, ConfigError
from services.runner.tests.conftest import SYSTEM, World, events_of

CODE = """
import asyncio, threading
release = threading.Event()

async def sign(request):
    return {"system": [*request["system"], f"signed for {request['tenant']}"]}

def shout(request):
    request["system"].append("LOUD")
    return {"system": request["system"]}

class Poet:
    async def __call__(self, request):
        return {"system": ["rhyme"]}
poet = Poet()

def crash(request): raise ValueError("t0psecret")
async def leave(request): raise SystemExit(1)
def leave_thread(request): raise SystemExit(1)
def block(request): release.wait()
async def stubborn(request):
    while not release.is_set():
        try: await asyncio.sleep(0.01)
        except asyncio.CancelledError: pass
def garbage(request): return object()
def huge(request): return {"system": ["x" * 10_000_000]}
constant = 7
"""
NAMES = (
    ["sign", "shout", "poet", "crash", "leave", "leave_thread", "block", "stubborn", "garbage", "huge", "constant"]
)  # fmt: skip


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package, as its metadata on the path makes it."""
    module = f"acme_transforms_{tmp_path.name}"
    (tmp_path / f"{module}.py").write_text(CODE)
    info = tmp_path / "acme_transforms-1.4.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-transforms\nVersion: 1.4.0\n")
    lines = [f"{name} = {module}:{name}" for name in (*NAMES, "missing")]
    (info / "entry_points.txt").write_text("\n".join(["[fairlead.transforms]", *lines]))
    monkeypatch.syspath_prepend(tmp_path)


def use(world: World, **plugins: Mapping[str, object]) -> None:
    world.config["transform"] = {
        name: {"parts": ["system"], **settings} for name, settings in plugins.items()
    }


async def last_uses(world: World) -> list[tuple[str, str, str]]:
    uses = events_of(await world.events(), AttemptDispatched)[-1].transforms or ()
    return [(use.name, use.version, use.outcome) for use in uses]


async def test_plugins_change_a_request_in_their_declared_order(world: World) -> None:
    use(world, sign={"order": 2}, shout={"order": 1})

    await world.prompt("msg_1", "hello")

    expected = f"{SYSTEM}\nLOUD\nsigned for default"
    assert world.provider.messages()[0] == ("system", expected)
    assert await last_uses(world) == [("shout", "1.4.0", "applied"), ("sign", "1.4.0", "applied")]


async def test_an_object_with_an_async_call_is_a_transform(world: World) -> None:
    use(world, poet={})

    await world.prompt("msg_1", "hello")

    assert world.provider.messages()[0] == ("system", "rhyme")


async def test_a_plugin_serves_only_the_tenants_of_its_configuration(world: World) -> None:
    use(world, sign={"tenants": ["other"]})

    await world.prompt("msg_1", "hello")

    assert world.provider.messages()[0] == ("system", SYSTEM)


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("crash", "error"),
        ("leave", "error"),
        ("leave_thread", "error"),
        ("block", "timeout"),
        ("stubborn", "timeout"),
        ("garbage", "malformed"),
        ("huge", "too-large"),
    ],
)
async def test_a_plugin_that_fails_is_left_out(
    world: World, caplog: pytest.LogCaptureFixture, name: str, outcome: str
) -> None:
    use(world, **{name: {"timeout_ms": 200 if outcome == "timeout" else 5_000}})

    await world.prompt("msg_1", "hello")

    assert await last_uses(world) == [(name, "1.4.0", outcome)]
    assert world.provider.messages()[0] == ("system", SYSTEM)
    assert "t0psecret" not in caplog.text
    release_calls(name)


async def test_threads_that_hang_are_bounded() -> None:
    config = Config.model_validate({"transform": {"block": {"parts": ["system"]}}})
    (plugin,) = load_plugins(config)

    for _ in range(THREADS_MAX):
        with pytest.raises(TransformFailed, match="no result within"):
            await plugin.transform.ask(b"{}", 0.001)
    began = time.monotonic()
    with pytest.raises(TransformFailed, match="still run"):
        await plugin.transform.ask(b"{}", 30)

    assert time.monotonic() - began < 15, "it did not wait for a thread"
    release_calls("block")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("unknown", "no installed package has the entry point"),
        ("missing", "cannot be loaded: AttributeError"),
        ("constant", "is not callable"),
    ],
)
def test_a_plugin_that_cannot_be_used_is_a_mistake_of_the_configuration(
    name: str, reason: str
) -> None:
    config = Config.model_validate({"transform": {name: {"parts": ["system"]}}})

    with pytest.raises(ConfigError, match=f"transform.{name}: .*{reason}"):
        load_plugins(config)


def release_calls(name: str) -> None:
    """Let the calls of a plugin that hangs end."""
    config = Config.model_validate({"transform": {name: {"parts": ["system"]}}})
    (plugin,) = load_plugins(config)
    function = plugin.transform.ask.__self__._function  # type: ignore[attr-defined]  # noqa: SLF001
    function.__globals__["release"].set()
