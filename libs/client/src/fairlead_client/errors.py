"""What the client raises besides the refusals of the server. Each message says what to do.

A refusal of the server is a `fairlead_schema.errors.Refused`, with a class for each tag of docs/errors.md.

ClientError
├── ServerAway          nobody answered for as long as the client waits
├── AddressInvalid      the address of the server cannot be one
├── ServerUntrusted     the certificate of the server cannot be checked, or is refused
├── NotFairlead         the address answers, but no gateway of Fairlead does
├── UnknownRefusal      the server refused in a way that this client does not know: it is newer
├── MalformedAnswer     an answer or an event cannot be read
├── TokenUnavailable    the source of the token gave none
├── ClientClosed        the program closed the client, and uses it
├── ExtraMissing        the package is installed without an extra that is needed
├── NotOverNats         the operation needs the HTTP API
├── PromptFailed        the model's turn failed, and the session rests
├── PromptWithdrawn     somebody withdrew the prompt before the model saw it
├── PromptUnanswered    the session rests, and nobody answers the prompt before something changes
├── AnswerMisfit        the answer does not fit its schema
└── NotInTime           the caller's own time is over
"""

from typing import Any, Final

from fairlead_schema.errors import InternalFailure, Refused, WireError
from fairlead_schema.identity.nats_address import redact_url

EXCERPT_LENGTH_MAX: Final = 200


class ClientError(Exception):
    """The client could not do what it was asked for."""


class ServerAway(ClientError):
    """Nobody answered. A request that was sent may have been served: repeat it with the same id."""

    def __init__(
        self, url: str, cause: str, *, was_sent: bool, retry_after_s: float | None = None
    ) -> None:
        address = "$FAIRLEAD_HTTP" if url.startswith("http") else "$FAIRLEAD_NATS_URL"
        super().__init__(
            f"no server answers at {redact_url(url)} ({cause}): start it, or correct the address"
            f" (url=, or {address})"
        )
        self.url = url
        self.was_sent = was_sent
        """False: the request did not leave, so nobody has served it."""
        self.retry_after_s = retry_after_s


class AddressInvalid(ClientError):
    def __init__(self, url: str, reason: str) -> None:
        super().__init__(
            f"{redact_url(url)!r} is no address of a server ({reason}): write it as http://host:port"
            " (url=, or $FAIRLEAD_HTTP)"
        )
        self.reason = reason


class ServerUntrusted(ClientError):
    """Nothing was sent: somebody else may stand where the server should be."""

    def __init__(self, reason: str, variable: str) -> None:
        super().__init__(
            f"{reason}: name the authority that signs the server's certificate (tls=, or ${variable})"
        )


class NotFairlead(ClientError):
    def __init__(self, url: str, status: int, content_type: str, text: str) -> None:
        excerpt = " ".join(text[:EXCERPT_LENGTH_MAX].split())
        super().__init__(
            f"{redact_url(url)} answers {status} with {content_type or 'no content type'}, which is no answer of"
            f" Fairlead: correct the address, or upgrade a server that is older than this client"
            f" ({excerpt or 'empty body'})"
        )
        self.url = url
        self.status = status


class UnknownRefusal(ClientError):
    def __init__(self, tag: str, message: str) -> None:
        super().__init__(
            f"{message} (the server calls it {tag}, which this client does not know: upgrade"
            " fairlead-client, or read the changelog of the server)"
        )
        self.tag = tag


def refusal_of_wire(body: WireError) -> Refused | UnknownRefusal:
    """The refusal that a server sent. A repeat of an unknown one would hide what a newer server says."""
    refusal = Refused.from_wire(body)
    if type(refusal) is InternalFailure and body.tag != InternalFailure.tag:
        return UnknownRefusal(body.tag, body.message)
    return refusal


class MalformedAnswer(ClientError):
    def __init__(self, what: str, reason: str, *, seq: int | None = None) -> None:
        super().__init__(f"{what} cannot be read: {reason}")
        self.seq = seq
        """The place of the event in its log, if the event says so. Read on after it."""


class TokenUnavailable(ClientError):
    def __init__(self, source: str, reason: str) -> None:
        super().__init__(f"no token from {source}: {reason}")
        self.reason = reason


class ClientClosed(ClientError):
    def __init__(self) -> None:
        super().__init__("the client is closed: make another one, or close it later")


class ExtraMissing(ClientError):
    def __init__(self, extra: str) -> None:
        super().__init__(f"this needs an extra: install fairlead-client[{extra}]")


class NotOverNats(ClientError):
    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is not served over NATS: use the client of the HTTP API for it")


class PromptFailed(ClientError):
    def __init__(self, message: str, error: dict[str, Any]) -> None:
        super().__init__(f"the turn failed: {message}")
        self.error = error
        """The error of the step. `code` says why a provider failed, `outcome` may be `unknown`."""


class PromptWithdrawn(ClientError):
    def __init__(self, message_id: str) -> None:
        super().__init__(f"the prompt {message_id} was withdrawn before the model saw it")


class PromptUnanswered(ClientError):
    def __init__(self, message_id: str, explanation: dict[str, Any]) -> None:
        reason, then = explanation.get("reason", "the session rests"), explanation.get("next")
        super().__init__(
            f"nobody answers the prompt {message_id}: {reason}" + (f" Next: {then}" if then else "")
        )
        self.code: str = explanation.get("code", "unknown")
        """Why the session rests, for programs: `over-budget`, `interrupted`, `turn-limit` and others."""
        self.explanation = explanation


class AnswerMisfit(ClientError):
    def __init__(self, reason: str, text: str) -> None:
        super().__init__(f"the answer does not fit its schema: {reason}")
        self.text = text
        """The answer as the model gave it."""


class NotInTime(ClientError):
    def __init__(self, what: str, timeout_s: float, cause: Exception | None = None) -> None:
        because = "" if cause is None else f" ({cause})"
        super().__init__(f"{what} took longer than {timeout_s:g} s{because}; the session goes on")
