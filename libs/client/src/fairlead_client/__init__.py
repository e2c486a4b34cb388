"""The Python client of Fairlead: durable sessions of AI agents.

A name is loaded when it is first used: a program that has one client does not wait for the other.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fairlead_client.async_client.client import AsyncFairlead
    from fairlead_client.credentials import TokenSource
    from fairlead_client.errors import (
        AddressInvalid,
        AnswerMisfit,
        ClientClosed,
        ClientError,
        ExtraMissing,
        MalformedAnswer,
        NotFairlead,
        NotInTime,
        NotOverNats,
        PromptFailed,
        PromptUnanswered,
        PromptWithdrawn,
        ServerAway,
        ServerUntrusted,
        TokenUnavailable,
        UnknownRefusal,
    )
    from fairlead_client.message_ids import mint_message_id, mint_session_id
    from fairlead_client.nats_login import NatsLogin
    from fairlead_client.prompt_answer import PromptAnswer
    from fairlead_client.received_event import ReceivedEvent
    from fairlead_client.sync_client.client import Fairlead
    from fairlead_client.webhooks.verification import (
        SignatureInvalid,
        WebhookDelivery,
        verify_webhook,
    )
    from fairlead_schema.errors import Refused

__all__ = [
    "AddressInvalid",
    "AnswerMisfit",
    "AsyncFairlead",
    "ClientClosed",
    "ClientError",
    "ExtraMissing",
    "Fairlead",
    "MalformedAnswer",
    "NatsLogin",
    "NotFairlead",
    "NotInTime",
    "NotOverNats",
    "PromptAnswer",
    "PromptFailed",
    "PromptUnanswered",
    "PromptWithdrawn",
    "ReceivedEvent",
    "Refused",
    "ServerAway",
    "ServerUntrusted",
    "SignatureInvalid",
    "TokenSource",
    "TokenUnavailable",
    "UnknownRefusal",
    "WebhookDelivery",
    "mint_message_id",
    "mint_session_id",
    "verify_webhook",
]

_MODULES: Final = {
    "AddressInvalid": "fairlead_client.errors",
    "AnswerMisfit": "fairlead_client.errors",
    "AsyncFairlead": "fairlead_client.async_client.client",
    "ClientClosed": "fairlead_client.errors",
    "ClientError": "fairlead_client.errors",
    "ExtraMissing": "fairlead_client.errors",
    "Fairlead": "fairlead_client.sync_client.client",
    "MalformedAnswer": "fairlead_client.errors",
    "NatsLogin": "fairlead_client.nats_login",
    "NotFairlead": "fairlead_client.errors",
    "NotInTime": "fairlead_client.errors",
    "NotOverNats": "fairlead_client.errors",
    "PromptAnswer": "fairlead_client.prompt_answer",
    "PromptFailed": "fairlead_client.errors",
    "PromptUnanswered": "fairlead_client.errors",
    "PromptWithdrawn": "fairlead_client.errors",
    "ReceivedEvent": "fairlead_client.received_event",
    "Refused": "fairlead_schema.errors",
    "ServerAway": "fairlead_client.errors",
    "ServerUntrusted": "fairlead_client.errors",
    "SignatureInvalid": "fairlead_client.webhooks.verification",
    "TokenSource": "fairlead_client.credentials",
    "TokenUnavailable": "fairlead_client.errors",
    "UnknownRefusal": "fairlead_client.errors",
    "WebhookDelivery": "fairlead_client.webhooks.verification",
    "mint_message_id": "fairlead_client.message_ids",
    "mint_session_id": "fairlead_client.message_ids",
    "verify_webhook": "fairlead_client.webhooks.verification",
}


def __getattr__(name: str) -> object:
    """A public name, from the module that has it."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
