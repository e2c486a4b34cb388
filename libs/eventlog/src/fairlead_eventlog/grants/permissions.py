"""The subjects that an identity may use, and the JetStream subjects behind each kind of use."""

from dataclasses import dataclass
from typing import Final

API: Final = "$JS.API"


@dataclass(frozen=True, slots=True)
class Permissions:
    """What an identity may publish and subscribe. It may always answer what it receives."""

    publish: tuple[str, ...] = ()
    subscribe: tuple[str, ...] = ()

    def __add__(self, other: "Permissions") -> "Permissions":
        return Permissions(
            tuple(dict.fromkeys((*self.publish, *other.publish))),
            tuple(dict.fromkeys((*self.subscribe, *other.subscribe))),
        )


def publish(*subjects: str) -> Permissions:
    return Permissions(publish=subjects)


def subscribe(*subjects: str) -> Permissions:
    return Permissions(subscribe=subjects)


def read_last(*streams: str) -> Permissions:
    """Read the last message of a subject from the leader."""
    return publish(*(f"{API}.STREAM.MSG.GET.{stream}" for stream in streams))


def read_many(*streams: str) -> Permissions:
    """Read messages of a subject in batches."""
    return publish(*(f"{API}.DIRECT.GET.{stream}" for stream in streams))


def read_state(*streams: str) -> Permissions:
    """Read how far a stream has come."""
    return publish(*(f"{API}.STREAM.INFO.{stream}" for stream in streams))


def purge(*streams: str) -> Permissions:
    """Remove the messages of a subject."""
    return publish(*(f"{API}.STREAM.PURGE.{stream}" for stream in streams))


def copy(*streams: str) -> Permissions:
    """Get whole streams as files of the server."""
    return publish(
        *(f"{API}.STREAM.SNAPSHOT.{stream}" for stream in streams),
        *(f"$JS.SNAPSHOT.ACK.{stream}.>" for stream in streams),
    )


def take(stream: str, consumer: str) -> Permissions:
    """Pull from a consumer and acknowledge what it delivers."""
    return publish(f"{API}.CONSUMER.MSG.NEXT.{stream}.{consumer}", f"$JS.ACK.{stream}.{consumer}.>")


def create_consumer(stream: str, consumer: str) -> Permissions:
    """Create a consumer, or change an existing one."""
    return publish(f"{API}.CONSUMER.CREATE.{stream}.{consumer}")


def list_consumers(*streams: str) -> Permissions:
    """Read how far each consumer of a stream has come."""
    return publish(*(f"{API}.CONSUMER.LIST.{stream}" for stream in streams))


def inspect_consumer(stream: str, consumer: str) -> Permissions:
    """Read how far a consumer has come."""
    return publish(f"{API}.CONSUMER.INFO.{stream}.{consumer}")
