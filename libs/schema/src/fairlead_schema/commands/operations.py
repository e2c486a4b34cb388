"""What an operator looks at first: services, streams, dead letters."""

from fairlead_schema.model import Model


class AskOperations(Model):
    """A request for the report. Its subject names the tenant of the caller."""

    dead_letters_max: int = 20


class ServiceInstance(Model):
    """One process that answers for a service."""

    name: str
    id: str
    version: str
    started: int | None = None
    """Epoch milliseconds."""
    requests: int = 0
    errors: int = 0
    pool: str | None = None
    """The pool of a worker."""


class StreamState(Model):
    """How much a stream of the NATS servers holds."""

    name: str
    description: str
    messages: int
    bytes: int
    last_position: int
    consumers: int


class ShownDeadLetter(Model):
    """A message of the caller's tenant that nobody could handle."""

    seq: int
    time: int
    subject: str
    reason: str
    payload: str


class OperationsReport(Model):
    """What the servers say now."""

    services: tuple[ServiceInstance, ...] = ()
    streams: tuple[StreamState, ...] = ()
    dead_letters: tuple[ShownDeadLetter, ...] = ()
