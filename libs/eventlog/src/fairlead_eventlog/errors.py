"""The errors of the log.

LogError
├── AppendConflict     another writer was first: read on and decide again
├── RecordChanged      another writer changed the record: read it and decide again
├── SessionBusy        other writers were first at every try: try again later
├── SessionErased      the session's log was deleted: nothing can be written to it any more
├── NotFinalised       an older release could not read the event: run `fairlead provision --finalise`
├── CommitTooLarge     the commit does not fit one message: split it or store by reference
├── MessageTooLarge    the servers carry no message of that size: send less
├── LogUnavailable     the servers are away, the outcome may be unknown: repeat the same commit id
│   ├── ConsumerMissing     somebody deleted a consumer: run `fairlead provision`
│   ├── LogFull             only the reserve for purges is left: purge sessions, or raise the limit
│   ├── StoreFull           the servers have no room for a message: the message says what to do
│   ├── ServerUnfit         the server lacks what Fairlead needs: the message says how to mend it
│   ├── SubjectRefused      the key has no grant for a subject: use the key of another identity
│   ├── CredentialsRefused  the servers do not know the key: give them the newest auth.conf
│   └── CertificateRefused  the servers' certificate has expired or is foreign: renew it, or correct nats.tls_ca
├── NoResponders       nobody serves that subject now: its server is gone or not yet up
├── StreamMissing      the streams are not provisioned: run `fairlead provision`
├── CredentialsUnusable  a key or certificate file cannot be used: correct the setting it names
├── TooFewServers      copies were wanted of a server that belongs to no cluster
└── UnsafeChange       provisioning would lose data: it changes nothing and says why
"""

from fairlead_schema.subjects import Address


class LogError(Exception):
    """The log refused or failed."""


class AppendConflict(LogError):
    def __init__(self, at: Address, *, expected: int, actual: int | None) -> None:
        place = "has moved" if actual is None else f"is at {actual}"
        super().__init__(f"{at.session_id} {place}, expected {expected}")
        self.at = at
        self.expected = expected
        self.actual = actual


class RecordChanged(LogError):
    def __init__(self, key: str, *, expected: int) -> None:
        super().__init__(f"another writer changed {key} after revision {expected}")
        self.key = key


class SessionBusy(LogError):
    def __init__(self, at: Address) -> None:
        super().__init__(f"other writers of {at.session_id} were first at every try")
        self.at = at


class SessionErased(LogError):
    def __init__(self, at: Address) -> None:
        super().__init__(f"the log of {at.session_id} was erased")
        self.at = at


class CommitTooLarge(LogError):
    def __init__(self, at: Address, size: int, limit: int) -> None:
        super().__init__(f"a commit of {size} bytes for {at.session_id} exceeds {limit}")
        self.size = size
        self.limit = limit


class MessageTooLarge(LogError):
    def __init__(self, subject: str, size: int, limit: int) -> None:
        super().__init__(
            f"a message of {size} bytes and its headers to {subject} exceed {limit} bytes"
        )
        self.size = size
        self.limit = limit


class NotFinalised(LogError):
    def __init__(self, type_: str, *, needed: int, level: int) -> None:
        super().__init__(
            f"{type_} needs level {needed} of the log's format, and level {level} is finalised:"
            " run `fairlead provision --finalise` when no older release will run again"
        )


class LogUnavailable(LogError):
    pass


class ConsumerMissing(LogUnavailable):
    def __init__(self, stream: str, consumer: str) -> None:
        super().__init__(
            f"consumer {consumer} of stream {stream} does not exist: run `fairlead provision`"
        )


class LogFull(LogUnavailable):
    def __init__(self, stream: str, used: int, allowed: int) -> None:
        super().__init__(
            f"{stream} holds {used:,} of {allowed:,} bytes, and the rest is for purges: purge"
            " sessions, or raise streams.log_bytes and run `fairlead provision`"
        )


class StoreFull(LogUnavailable):
    def __init__(self, stream: str, reason: str) -> None:
        super().__init__(
            f"NATS has no room for {stream} ({reason}): purge sessions, free disk space, or raise"
            " max_file_store of nats-server or the limit in [streams]"
        )


class ServerUnfit(LogUnavailable):
    def __init__(self, server: str, cause: str, cure: str) -> None:
        super().__init__(f"NATS at {server} {cause}: {cure}")
        self.cure = cure


class SubjectRefused(LogUnavailable):
    def __init__(self, reason: str) -> None:
        super().__init__(f"NATS refused a subject to this key: {reason}")


class CredentialsRefused(LogUnavailable):
    def __init__(self, server: str, credential: str, reason: str) -> None:
        super().__init__(
            f"NATS at {server} refused {credential} ({reason}): give this process its key of this"
            " deployment; write the grants with `fairlead secrets` or `fairlead provision"
            " --nats-auth`, and reload the nats-servers"
        )


class CertificateRefused(LogUnavailable):
    def __init__(self, server: str, reason: str, cure: str) -> None:
        super().__init__(f"NATS at {server} shows a certificate that is refused ({reason}): {cure}")


class NoResponders(LogError):
    def __init__(self, subject: str) -> None:
        super().__init__(f"nobody answers on {subject}")
        self.subject = subject


class StreamMissing(LogError):
    def __init__(self, stream: str) -> None:
        super().__init__(f"stream {stream} does not exist: run `fairlead provision`")
        self.stream = stream


class CredentialsUnusable(LogError):
    def __init__(self, setting: str, file: str, reason: str) -> None:
        super().__init__(f"{setting} {file} cannot be used: {reason}")
        self.setting = setting


class UnsafeChange(LogError):
    pass


class TooFewServers(LogError):
    def __init__(self, server: str, replicas: int) -> None:
        super().__init__(
            f"NATS at {server} belongs to no cluster and keeps one copy of each stream:"
            f" choose --replicas 1, or connect {replicas} servers to a cluster first"
        )
