"""The NATS service API (NATS ADR-32): `nats micro ls`, `info` and `stats` answer for every verb."""

import json
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from typing import Any, Final, Literal, TypeAlias

from pydantic_core import to_json

from fairlead_schema.errors import Refused
from fairlead_schema.model import Model

ROOT: Final = "$SRV"
TYPE: Final = "io.nats.micro.v1.{}_response"

ServiceRequest: TypeAlias = Literal["PING", "INFO", "STATS"]
REQUESTS: Final[tuple[ServiceRequest, ...]] = ("PING", "INFO", "STATS")


@dataclass(slots=True)
class Endpoint:
    """One verb: where it listens, the schemas of its request and response, and its statistics."""

    verb: str
    subject: str
    queue: str
    request: type[Model]
    response: type[Model]
    requests: int = 0
    errors: int = 0
    last_error: str = ""
    processing_ns: int = 0

    def count(self, elapsed_ns: int, refused: Refused | None) -> None:
        """Count one request that was answered."""
        self.requests += 1
        self.processing_ns += elapsed_ns
        if refused is not None:
            self.errors += 1
            self.last_error = f"{refused.tag}: {refused}"

    def identity(self) -> dict[str, str]:
        # The standard allows no dot in a name.
        name = self.verb.replace(".", "-")
        return {"name": name, "subject": self.subject, "queue_group": self.queue}

    def metadata(self) -> dict[str, str]:
        """The standard allows only text as metadata, so that the schemas are JSON in text."""
        return {
            "verb": self.verb,
            "request_schema": _schema(self.request, "validation"),
            "response_schema": _schema(self.response, "serialization"),
        }

    def statistics(self) -> dict[str, Any]:
        return {
            "num_requests": self.requests,
            "num_errors": self.errors,
            "last_error": self.last_error,
            "processing_time": self.processing_ns,
            "average_processing_time": self.processing_ns // max(self.requests, 1),
        }


@dataclass(slots=True)
class ServiceApi:
    """What one instance of a service says about itself."""

    name: str
    description: str
    endpoints: list[Endpoint] = field(default_factory=list)
    id: str = field(default_factory=lambda: secrets.token_hex(11))
    started: datetime = field(default_factory=lambda: datetime.now(UTC))

    def subjects(self, request: ServiceRequest) -> tuple[str, ...]:
        """Where a request to all services, to this kind of service, and to this instance comes."""
        subject = f"{ROOT}.{request}"
        return subject, f"{subject}.{self.name}", f"{subject}.{self.name}.{self.id}"

    def answers(self) -> Iterator[tuple[str, Callable[[], bytes]]]:
        """Every subject on which this instance is asked, with what makes its answer."""
        for request in REQUESTS:
            for subject in self.subjects(request):
                yield subject, partial(self.answer, request)

    def answer(self, request: ServiceRequest) -> bytes:
        """The answer to one request."""
        return to_json({**self._identity(request), **self._body(request)})

    def _body(self, request: ServiceRequest) -> dict[str, Any]:
        match request:
            case "PING":
                return {}
            case "INFO":
                endpoints = [
                    {**endpoint.identity(), "metadata": endpoint.metadata()}
                    for endpoint in self.endpoints
                ]
                return {"description": self.description, "endpoints": endpoints}
            case "STATS":
                endpoints = [
                    {**endpoint.identity(), **endpoint.statistics()} for endpoint in self.endpoints
                ]
                started = self.started.isoformat().replace("+00:00", "Z")
                return {"started": started, "endpoints": endpoints}

    def _identity(self, request: ServiceRequest) -> dict[str, Any]:
        return {
            "type": TYPE.format(request.lower()),
            "name": self.name,
            "id": self.id,
            "version": version("fairlead-service"),
            "metadata": {},
        }


def _schema(model: type[Model], mode: Literal["validation", "serialization"]) -> str:
    return json.dumps(model.model_json_schema(by_alias=True, mode=mode), separators=(",", ":"))
