"""The FastStream middlewares of every verb: answers with their statistics, and metrics."""

from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from time import perf_counter_ns
from typing import Any

from fast_depends.exceptions import ValidationError as ParameterError
from faststream import BaseMiddleware, ContextRepo, StreamMessage
from faststream.nats.prometheus.provider import NatsMetricsSettingsProvider
from faststream.prometheus import ConsumeAttrs
from faststream.prometheus.middleware import PrometheusMiddleware
from prometheus_client import REGISTRY
from typing_extensions import override

from fairlead_service.audit import audit_own_client
from fairlead_service.logs import log_with
from fairlead_service.rpc.answers import PRINCIPAL, TENANT, Answer, Answerer, invalid_parameter
from fairlead_service.rpc.caller import caller_of, current_caller
from fairlead_service.rpc.service_api import Endpoint
from fairlead_service.rpc.verb_metrics import APP, PREFIX
from fairlead_service.traces.tracer import current_span, is_tracing, open_verb_span, span_fields


class AnswerMiddleware(BaseMiddleware):
    """Turns what a handler returns or raises into an answer, and counts it for its endpoint."""

    def __init__(
        self,
        message: object,
        /,
        *,
        context: ContextRepo,
        answerer: Answerer,
        endpoints: Mapping[object, Endpoint],
    ) -> None:
        super().__init__(message, context=context)
        self._answerer = answerer
        self._endpoints = endpoints

    @override
    async def consume_scope(
        self, call_next: Callable[[Any], Awaitable[Any]], msg: StreamMessage[Any]
    ) -> bytes:
        began = perf_counter_ns()
        endpoint = self._endpoints[self.context.get_local("handler_")]
        with open_verb_span(endpoint.verb, msg.headers) as span:
            answer = await self._answer(call_next, msg)
            if answer.refused is not None:
                span.fail(answer.refused.tag)
        endpoint.count(perf_counter_ns() - began, answer.refused)
        audit_own_client(msg.raw_message.subject, answer.refused)
        return answer.body

    async def _answer(
        self, call_next: Callable[[Any], Awaitable[Any]], msg: StreamMessage[Any]
    ) -> Answer:
        try:
            with caller_of(msg.raw_message.subject, msg.headers):
                fields = await _log_fields(msg)
                with log_with(principal=current_caller(), **fields):
                    if is_tracing():
                        current_span().set(span_fields())
                    return self._answerer.succeed(await call_next(msg))
        except ParameterError as error:
            refusal = invalid_parameter(error) or error
            return self._answerer.refuse(refusal, request=msg.raw_message.subject)
        except Exception as error:  # noqa: BLE001 - a caller must never wait for a defect of ours
            return self._answerer.refuse(error, request=msg.raw_message.subject)


async def _log_fields(msg: StreamMessage[Any]) -> dict[str, str]:
    """The tenant and the session that a request names. FastStream decodes its body only once."""
    body, tenant = await msg.decode(), msg.path.get(TENANT)
    session_id = body.get("sessionID") if isinstance(body, dict) else None
    named = {"tenant": tenant, "session_id": session_id}
    return {name: value for name, value in named.items() if isinstance(value, str)}


class _SubjectPatterns(NatsMetricsSettingsProvider):
    """Labels metrics by the subject without its tenant and principal: those have no bound."""

    @override
    def get_consume_attrs_from_message(self, msg: StreamMessage[Any]) -> ConsumeAttrs:
        attributes = super().get_consume_attrs_from_message(msg)
        tenant = msg.path.get(TENANT)
        if tenant is not None:
            tokens = attributes["destination_name"].split(".")
            # The first two tokens are ours: a tenant may have the name of one of them.
            at = tokens.index(tenant, 2)
            tokens[at] = "*"
            if PRINCIPAL in msg.path:
                tokens[at + 1] = "*"
            attributes["destination_name"] = ".".join(tokens)
        return attributes


@cache
def metrics_middleware() -> PrometheusMiddleware[Any, Any]:
    """The metrics of all verbs of this process; the registry takes each metric only once."""
    return PrometheusMiddleware(
        settings_provider_factory=lambda _message: _SubjectPatterns(),
        registry=REGISTRY,
        app_name=APP,
        metrics_prefix=PREFIX,
    )
