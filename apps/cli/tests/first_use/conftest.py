"""A simulated provider in a thread, because commands run an event loop of their own."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from fairlead_cli.embedded.ports import LOOPBACK, free_port
from fairlead_cli.sim.app import SimSettings, build_app
from fairlead_service.presets.preset import PRESETS

ServeModels: TypeAlias = Callable[[object], str]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory, an environment without keys, and no server at the ports of presets."""
    for preset in PRESETS.values():
        monkeypatch.delenv(preset.key_env or preset.base_url_env, raising=False)
        monkeypatch.delenv(preset.base_url_env, raising=False)
        if preset.is_local:
            monkeypatch.setenv(preset.base_url_env, f"http://{LOOPBACK}:{free_port()}/v1")
    monkeypatch.delenv("FAIRLEAD_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def sim() -> Iterator[str]:
    """A simulated provider that knows one key."""
    with serve(build_app(SimSettings(api_key="right-key"))) as url:
        yield url


@pytest.fixture
def serve_models() -> Iterator[ServeModels]:
    """Starts a local server that answers `/v1/models` with this, and simulates its models."""
    with ExitStack() as servers:

        def start(answer: object) -> str:
            async def models(_request: Request) -> Response:
                raw = isinstance(answer, bytes)
                return Response(answer) if raw else JSONResponse(answer)

            routes: list[Any] = [Route("/v1/models", models), Mount("/", build_app(SimSettings()))]
            return f"{servers.enter_context(serve(Starlette(routes=routes)))}/v1"

        yield start


@contextmanager
def serve(app: Starlette) -> Iterator[str]:
    port = free_port()
    server = uvicorn.Server(
        uvicorn.Config(app, host=LOOPBACK, port=port, lifespan="off", log_config=None)
    )
    ready = threading.Event()

    async def run() -> None:
        serving = asyncio.create_task(server.serve())
        while not server.started and not serving.done():
            await asyncio.sleep(0.01)
        ready.set()
        await serving

    thread = threading.Thread(target=asyncio.run, args=(run(),))
    thread.start()
    assert ready.wait(30)
    try:
        yield f"http://{LOOPBACK}:{port}"
    finally:
        server.should_exit = True
        thread.join(30)
