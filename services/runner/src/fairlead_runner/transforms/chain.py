"""Runs the transforms of a request, one after the other, each with a deadline."""

import asyncio
import logging
import time
from dataclasses import dataclass
from typing import Final

from fairlead_runner.metrics import TRANSFORM_SECONDS, TRANSFORMS
from fairlead_runner.transforms.plugins import Plugin
from fairlead_runner.transforms.registered import RegisteredTransforms
from fairlead_runner.transforms.transform import Transform, TransformFailed, parse_answer
from fairlead_schema.events.execution import TransformUse
from fairlead_schema.ids import TenantId
from fairlead_schema.provider.request import ModelRequest
from fairlead_service.config.sections import RunnerConfig
from fairlead_session.transforms.change import apply_change
from fairlead_session.transforms.document import RequestOrigin, build_document
from fairlead_session.transforms.messages import InvalidChange

log = logging.getLogger(__name__)

APPLIED: Final = "applied"
UNCHANGED: Final = "unchanged"


class RequestWithheld(Exception):
    """A transform failed that must not fail: the request is not sent."""


@dataclass(frozen=True, slots=True)
class TransformedRequest:
    """A request after its transforms, and what each of them did."""

    request: ModelRequest
    uses: tuple[TransformUse, ...] | None = None


class TransformChain:
    """Transforms the requests of one runner."""

    def __init__(
        self, settings: RunnerConfig, plugins: tuple[Plugin, ...], registered: RegisteredTransforms
    ) -> None:
        self._settings = settings
        self._plugins = plugins
        self.registered = registered

    async def of(self, tenant: TenantId) -> tuple[Transform, ...]:
        """The transforms of a tenant's requests, in their order. Raises LogError if unknown."""
        services = await self.registered.of(tenant) if self._settings.service_transforms else ()
        plugins = tuple(plugin.transform for plugin in self._plugins if plugin.serves(tenant))
        return tuple(sorted((*plugins, *services), key=lambda transform: transform.place))

    async def run(
        self, transforms: tuple[Transform, ...], request: ModelRequest, origin: RequestOrigin
    ) -> TransformedRequest:
        """The request after all transforms. Raises RequestWithheld.

        All of them together have `transforms_timeout_s`. An answer that comes later is dropped.
        """
        deadline = time.monotonic() + self._settings.transforms_timeout_s
        uses: list[TransformUse] = []
        for transform in transforms:
            began = time.monotonic()
            timeout_s = min(transform.rules.timeout_ms / 1000, deadline - began)
            try:
                after = await self._run_one(transform, request, origin, timeout_s)
                outcome = UNCHANGED if after is request else APPLIED
                request = after
            except TransformFailed as failure:
                outcome = failure.kind
                self._report(transform, origin, failure)
            finally:
                TRANSFORM_SECONDS.observe(time.monotonic() - began)
            TRANSFORMS.labels(outcome).inc()
            uses.append(
                TransformUse(name=transform.name, version=transform.version, outcome=outcome)
            )
        return TransformedRequest(request, tuple(uses))

    async def _run_one(
        self, transform: Transform, request: ModelRequest, origin: RequestOrigin, timeout_s: float
    ) -> ModelRequest:
        if timeout_s <= 0:
            raise TransformFailed("timeout", "the transforms before it used up the time")
        document = build_document(request, origin, transform.rules.parts)
        try:
            async with asyncio.timeout(timeout_s + _MARGIN_S):
                raw = await transform.ask(document, timeout_s)
        except TimeoutError:
            raise TransformFailed("timeout", f"no answer within {timeout_s:g} s") from None
        change = parse_answer(raw, self._settings.transform_bytes_max)
        try:
            return apply_change(
                request, change, origin, parts=transform.rules.parts, trusted=transform.trusted
            )
        except InvalidChange as error:
            raise TransformFailed("refused", str(error)) from error

    def _report(
        self, transform: Transform, origin: RequestOrigin, failure: TransformFailed
    ) -> None:
        """Log a failure. Raises RequestWithheld if the transform must not fail."""
        closed = transform.rules.on_failure == "closed"
        extra = {
            "tenant": origin.at.tenant,
            "session_id": origin.at.session_id,
            "transform": transform.name,
            "version": transform.version,
            "outcome": failure.kind,
            "reason": failure.reason,
        }
        if not closed:
            log.warning("transform failed: the request goes out without it", extra=extra)
            return
        TRANSFORMS.labels(failure.kind).inc()
        log.error("transform failed: the request is withheld until it works", extra=extra)
        raise RequestWithheld(f"transform {transform.name}: {failure.kind}: {failure.reason}")


# The transport has the same deadline. This one holds if the transport does not keep its own.
_MARGIN_S: Final = 0.25
