"""One valid request for each operation, for tests that try every operation."""

from dataclasses import dataclass, field
from typing import Any

import httpx

from fairlead_gateway.http.operation import AnyOperation

PROMPT = {"prompt": {"text": "hello"}}
BODIES: dict[str, dict[str, Any]] = {
    "session.create": {},
    "session.fork": {},
    "session.prompt": PROMPT,
    "input.edit": PROMPT,
    "session.agent": {"agent": "build"},
    "session.model": {"model": {"providerID": "sim", "id": "fast"}},
    "session.move": {"location": {"directory": "/work"}},
    "session.budget": {"cost": 1.0},
    "permission.ask": {"action": "bash", "resources": ["ls"]},
    "permission.reply": {"reply": "once"},
    "question.reply": {"answers": [["yes"]]},
    "webhook.create": {"url": "https://example.com/hook", "events": ["rested"]},
    "webhook.change": {"paused": True},
    "schedule.create": {"cron": "0 9 * * *", "prompt": {"text": "hello"}},
    "schedule.change": {"paused": True},
}
QUERIES = {"session.wait": {"timeout_s": "0.1"}, "fs.find": {"query": "main"}}
PARAMETERS = {
    "sessionID": "ses_1",
    "messageID": "msg_1",
    "outputID": "out_1",
    "webhookID": "whk_1",
    "deliveryID": "dlv_1",
    "scheduleID": "sch_1",
    "attachmentID": f"fil_{'0' * 64}",
    "id": "per_1",
    "providerID": "sim",
    "path": "src/main.py",
}


@dataclass(frozen=True)
class SampleRequest:
    """A request that an operation accepts."""

    operation: AnyOperation
    path: str
    body: dict[str, Any] | None
    query: dict[str, str] = field(default_factory=dict)

    async def send(self, client: httpx.AsyncClient, **headers: str) -> httpx.Response:
        """Send the request. A stream that opens is not read."""
        request = client.build_request(
            self.operation.method, self.path, json=self.body, params=self.query, headers=headers
        )
        return await client.send(request)


def sample_request(operation: AnyOperation) -> SampleRequest:
    """A valid request of an operation."""
    request_id = "per_1" if "/permission/" in operation.path else "que_1"
    path = operation.path.format(**PARAMETERS, requestID=request_id)
    query = QUERIES.get(operation.id, {})
    return SampleRequest(operation, path, BODIES.get(operation.id), query)
