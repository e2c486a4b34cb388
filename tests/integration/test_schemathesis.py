"""Generated requests from the OpenAPI document, with and without a token.

No answer is a defect, has a status that the document does not declare, or differs from its schema.
Input that the document forbids is refused.
"""

import asyncio
from collections.abc import Callable
from typing import Any, TypeAlias

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import Case, CheckFunction, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from fairlead_gateway.http.openapi import document
from fairlead_gateway.http.operation import AnyOperation
from fairlead_gateway.http.request_parser import UNSUPPORTED_MEDIA_TYPE
from fairlead_gateway.routes import OPERATIONS
from fairlead_schema.errors import LimitReached, ServiceUnavailable, Unauthorized
from fairlead_testing.stack import Stack

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

EXAMPLES = 10
HEAD_TOO_LARGE = 431
AnyCase: TypeAlias = Case[Any]
GUARD_S = 20.0
SCHEMA = schemathesis.openapi.from_dict(document(OPERATIONS))
BOUNDED = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    derandomize=True,
    phases=(Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)
ANSWER_CHECKS: list[CheckFunction] = [
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


def cases(operation: AnyOperation, session_id: str) -> st.SearchStrategy[AnyCase]:
    """Requests that fit the document and requests that do not, for known and unknown sessions."""
    described = SCHEMA[operation.path][operation.method]
    known = {"sessionID": session_id} if operation.in_session else None
    strategies = [
        described.as_strategy(mode, path_parameters=path)
        for mode in GenerationMode
        for path in ((None,) if known is None else (None, known))
    ]
    return st.one_of(strategies)


def send(client: httpx.Client, case: AnyCase) -> httpx.Response:
    """Send a generated request. The frames of a stream are not read: a stream has no end."""
    if "timeout_s" in (case.query or {}) and isinstance(case.query["timeout_s"], int | float):
        case.query["timeout_s"] = min(case.query["timeout_s"], 0.1)
    options = case.as_transport_kwargs(base_url=str(client.base_url))
    options.pop("cookies", None)
    if isinstance(options.get("data"), bytes):
        options["content"] = options.pop("data")
    with client.stream(**options) as response:
        if response.headers.get("content-type") != "text/event-stream":
            response.read()
        return response


async def fuzz(
    up: Stack,
    operation: AnyOperation,
    key: str | None,
    check: Callable[[AnyCase, httpx.Response], None],
) -> None:
    """Check the answers to requests of one operation. Hypothesis is not async, so a thread runs it."""
    session_id = await up.session()
    headers = {} if key is None else {"authorization": f"Bearer {key}"}

    @BOUNDED
    @given(cases(operation, session_id))
    def run(case: AnyCase) -> None:
        # A header with blanks at its end is never sent.
        stripped = {name: text.strip() for name, text in case.headers.items()}
        case.headers.update(stripped | headers)
        try:
            answer = send(client, case)
        except httpx.InvalidURL:
            # The client itself refuses an address of 64 KiB.
            return
        check(case, answer)

    with httpx.Client(base_url=up.up.http, trust_env=False, timeout=GUARD_S) as client:
        await asyncio.to_thread(run)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
async def test_an_operation_does_what_its_document_says(up: Stack, operation: AnyOperation) -> None:
    def check(case: AnyCase, answer: httpx.Response) -> None:
        if not answer.is_stream_consumed:
            assert answer.status_code == operation.status
            return
        if answer.status_code == HEAD_TOO_LARGE:
            # The server refuses a long address before it looks at its words.
            return
        unavailable = answer.status_code == ServiceUnavailable.status
        checks = ANSWER_CHECKS if unavailable else [*ANSWER_CHECKS, not_a_server_error]
        case.validate_response(answer, checks=[*checks, negative_data_rejection])

    await fuzz(up, operation, up.up.token, check)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
async def test_without_a_token_nothing_but_a_refusal_comes_back(
    up: Stack, operation: AnyOperation
) -> None:
    def check(case: AnyCase, answer: httpx.Response) -> None:
        if answer.status_code == HEAD_TOO_LARGE:
            return
        case.validate_response(answer, checks=[*ANSWER_CHECKS, not_a_server_error])
        # So many failed logins use up the limit of their address.
        refusals = {Unauthorized.status, LimitReached.status, UNSUPPORTED_MEDIA_TYPE}
        # Nobody has to say who they are to sign in, but only an own page may sign in and out.
        free = {200} if operation.method == "GET" else {400, 403, 415}
        allowed = free if operation.scope is None else refusals
        assert answer.status_code in allowed

    await fuzz(up, operation, None, check)
