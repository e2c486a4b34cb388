"""The names of spans and attributes. docs/operations/traces.md has them as a table, which a test compares.

Attributes of OpenTelemetry's conventions keep their names; all others begin with `fairlead.`.
"""

from typing import Final, NamedTuple


class SpanName(NamedTuple):
    """One kind of span: its name as people see it, its kind, who opens it, and what it covers."""

    name: str
    kind: str
    service: str
    covers: str


HTTP_REQUEST: Final = "<method> <route>"
VERB: Final = "<verb>"
INTAKE: Final = "intake"
DRAIN: Final = "drain"
TURN: Final = "turn"
PREPARE: Final = "prepare turn"
CHAT: Final = "chat"
COMPACTION: Final = "compaction"
TITLE: Final = "title"
EXECUTE_TOOL: Final = "execute_tool"
DELIVERY: Final = "webhook delivery"
SCHEDULE: Final = "schedule run"

SPANS: Final = (
    SpanName(HTTP_REQUEST, "server", "gateway", "one HTTP request; of a stream only its start"),
    SpanName(VERB, "server", "ingest, tools, hooks, projector", "one request over NATS"),
    SpanName(INTAKE, "consumer", "ingest", "one published prompt"),
    SpanName(DRAIN, "consumer", "runner", "one wake, from its delivery to the rest of the session"),
    SpanName(TURN, "internal", "runner", "one provider turn"),
    SpanName(PREPARE, "internal", "runner", "the safe boundary: observe, promote, commit"),
    SpanName(
        f"{CHAT} <model>", "client", "runner", "one request to a provider; a retry is another"
    ),
    SpanName(COMPACTION, "internal", "runner", "one compaction, with its request to the provider"),
    SpanName(TITLE, "internal", "runner", "one title by the small model"),
    SpanName(f"{EXECUTE_TOOL} <tool>", "consumer", "tools", "one request for a call, with its run"),
    SpanName(DELIVERY, "client", "hooks", "one attempt to deliver an event to a webhook"),
    SpanName(SCHEDULE, "internal", "hooks", "one run of a schedule"),
)

TENANT: Final = "fairlead.tenant"
PRINCIPAL: Final = "fairlead.principal"
SESSION: Final = "gen_ai.conversation.id"
ATTEMPT: Final = "fairlead.attempt.id"
REQUEST: Final = "fairlead.request.id"
PART: Final = "fairlead.service"
WAKE_WAIT_MS: Final = "fairlead.wake.wait_ms"
DELIVERIES: Final = "fairlead.deliveries"
END: Final = "fairlead.end"
STEP: Final = "fairlead.step"
CAUSE: Final = "fairlead.cause"
RETRY_AFTER_S: Final = "fairlead.retry_after_s"
CANCELLED: Final = "fairlead.cancelled"
WEBHOOK: Final = "fairlead.webhook.id"
SCHEDULE_ID: Final = "fairlead.schedule.id"
ERROR: Final = "error.type"
METHOD: Final = "http.request.method"
ROUTE: Final = "http.route"
STATUS: Final = "http.response.status_code"
RPC_SYSTEM: Final = "rpc.system"
RPC_METHOD: Final = "rpc.method"
OPERATION: Final = "gen_ai.operation.name"
PROVIDER: Final = "gen_ai.provider.name"
AGENT: Final = "gen_ai.agent.name"
REQUEST_MODEL: Final = "gen_ai.request.model"
RESPONSE_MODEL: Final = "gen_ai.response.model"
FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
FIRST_CHUNK_S: Final = "gen_ai.response.time_to_first_chunk"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
CACHE_READ_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
CACHE_WRITE_TOKENS: Final = "gen_ai.usage.cache_creation.input_tokens"
TOOL_NAME: Final = "gen_ai.tool.name"
CALL: Final = "gen_ai.tool.call.id"
INPUT_MESSAGES: Final = "gen_ai.input.messages"
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
ARGUMENTS: Final = "gen_ai.tool.call.arguments"
RESULT: Final = "gen_ai.tool.call.result"

OF_LOG_FIELDS: Final = {
    "tenant": TENANT,
    "principal": PRINCIPAL,
    "session_id": SESSION,
    "attempt_id": ATTEMPT,
    "request_id": REQUEST,
}
"""What spans take over from the log lines of their task."""

CONTENT: Final = (INPUT_MESSAGES, OUTPUT_MESSAGES, ARGUMENTS, RESULT)
"""Only with `traces.content`."""
