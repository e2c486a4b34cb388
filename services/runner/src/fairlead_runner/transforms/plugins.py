"""Transforms from installed Python packages: entry points that the configuration names."""

import asyncio
import inspect
import threading
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from pydantic_core import PydanticSerializationError, from_json, to_json

from fairlead_runner.transforms.transform import Transform, TransformFailed
from fairlead_schema.ids import TenantId
from fairlead_schema.transforms.registration import TransformRules
from fairlead_service.config.configuration import Config, ConfigError
from fairlead_service.config.transforms import TransformConfig

GROUP: Final = "fairlead.transforms"
THREADS_MAX: Final = 8
"""How many threads a plugin may hold, also threads that hang. A further call fails at once."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """A configured plugin, and the tenants that it serves: all of them if it names none."""

    transform: Transform
    tenants: tuple[TenantId, ...]

    def serves(self, tenant: TenantId) -> bool:
        return not self.tenants or tenant in self.tenants


def load_plugins(config: Config) -> tuple[Plugin, ...]:
    """The plugins that the configuration names. Raises ConfigError for one that cannot be used."""
    if not config.transform:
        return ()
    installed = {entry.name: entry for entry in entry_points(group=GROUP)}
    return tuple(_load(name, rules, installed) for name, rules in config.transform.items())


def _load(name: str, settings: TransformConfig, installed: dict[str, EntryPoint]) -> Plugin:
    entry = installed.get(name)
    if entry is None:
        reason = f"no installed package has the entry point {name!r} in {GROUP}"
        raise ConfigError("configuration", f"transform.{name}", reason)
    try:
        function = entry.load()
    except Exception as error:
        reason = f"{entry.value} cannot be loaded: {type(error).__name__}: {error}"
        raise ConfigError("configuration", f"transform.{name}", reason) from error
    if not callable(function):
        reason = f"{entry.value} is not callable"
        raise ConfigError("configuration", f"transform.{name}", reason)
    version = "0" if entry.dist is None else entry.dist.version
    rules = TransformRules(**settings.model_dump(exclude={"tenants"}))
    call = PluginCall(name, function)
    return Plugin(Transform(name, version, rules, call.ask, trusted=True), settings.tenants)


class PluginCall:
    """Calls one plugin. Nobody waits for a call after its deadline, and its result is not used."""

    def __init__(self, name: str, function: Callable[[Any], Any]) -> None:
        self._name = name
        self._function = function
        self._is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004 - an object with an async __call__
        )
        self._threads = threading.BoundedSemaphore(THREADS_MAX)
        self._late: set[asyncio.Future[Any]] = set()

    async def ask(self, document: bytes, timeout_s: float) -> bytes:
        """The answer of the plugin, as a service would send it. Raises TransformFailed."""
        # Each call gets its own copy: a plugin may change what it gets.
        copy = from_json(document)
        running = self._start_task(copy) if self._is_async else self._start_thread(copy)
        await self._wait(running, timeout_s)
        error = running.exception()
        if error is not None:
            raise TransformFailed("error", f"it raised {type(error).__name__}") from None
        try:
            return to_json({"data": running.result()})
        except (PydanticSerializationError, ValueError, RecursionError) as error:
            raise TransformFailed("malformed", "its result is not JSON") from error

    async def _wait(self, running: asyncio.Future[Any], timeout_s: float) -> None:
        try:
            await asyncio.wait({running}, timeout=timeout_s)
        finally:
            if not running.done():
                # A plugin may ignore the cancellation, so nobody waits for it.
                running.cancel()
                self._late.add(running)
                running.add_done_callback(self._forget)
        if not running.done() or running.cancelled():
            raise TransformFailed("timeout", f"no result within {timeout_s:g} s")

    def _forget(self, running: asyncio.Future[Any]) -> None:
        self._late.discard(running)
        if not running.cancelled():
            running.exception()

    def _start_task(self, document: Any) -> asyncio.Future[Any]:  # noqa: ANN401 - any JSON
        async def call() -> Any:  # noqa: ANN401 - any JSON
            try:
                return await self._function(document)
            except (SystemExit, KeyboardInterrupt) as error:
                raise RuntimeError("a plugin tried to end the process") from error

        return asyncio.create_task(call())

    def _start_thread(self, document: Any) -> asyncio.Future[Any]:  # noqa: ANN401 - any JSON
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        if not self._threads.acquire(blocking=False):
            raise TransformFailed("timeout", f"{THREADS_MAX} of its calls still run")

        def settle(result: Any, error: BaseException | None) -> None:  # noqa: ANN401 - any JSON
            if future.done():
                return
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(RuntimeError(type(error).__name__))

        def run() -> None:
            result, failure = None, None
            try:
                result = self._function(document)
            except BaseException as error:  # noqa: BLE001 - a plugin ends its call, not the process
                failure = error
            self._threads.release()
            if not loop.is_closed():
                loop.call_soon_threadsafe(settle, result, failure)

        # A daemon: a thread that hangs does not keep the process from ending.
        threading.Thread(target=run, name=f"transform-{self._name}", daemon=True).start()
        return future
