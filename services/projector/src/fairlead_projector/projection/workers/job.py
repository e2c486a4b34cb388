"""What a worker of a rebuild has to do, as one line for its standard input."""

from dataclasses import dataclass, field

from pydantic import TypeAdapter

from fairlead_schema.identity.nats_address import NatsAddress


@dataclass(frozen=True, slots=True)
class WorkerJob:
    """The shards of a worker, and where it finds the log and the tables.

    It goes through a pipe: arguments and environments of processes are no place for passwords.
    """

    dsn: str = field(repr=False)
    nats: NatsAddress
    shards: tuple[int, ...]
    reader: str

    def encode(self) -> bytes:
        return _JOB.dump_json(self) + b"\n"


def decode_job(line: bytes) -> WorkerJob:
    """The job of a line that `encode` made."""
    return _JOB.validate_json(line)


_JOB = TypeAdapter(WorkerJob)
