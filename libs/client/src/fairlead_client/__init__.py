"""The Python client of Fairlead: durable sessions of AI agents."""

from fairlead_client.async_client.client import AsyncFairlead
from fairlead_client.credentials import TokenSource
from fairlead_client.errors import (
    AnswerMisfit,
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
    TokenUnavailable,
    UnknownRefusal,
)
from fairlead_client.message_ids import mint_message_id, mint_session_id
from fairlead_client.nats_login import NatsLogin
from fairlead_client.prompt_answer import PromptAnswer
from fairlead_client.received_event import ReceivedEvent
from fairlead_client.sync_client.client import Fairlead
from fairlead_client.webhooks.verification import SignatureInvalid, WebhookDelivery, verify_webhook
from fairlead_schema.errors import Refused

__all__ = [
    "AnswerMisfit",
    "AsyncFairlead",
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
    "SignatureInvalid",
    "TokenSource",
    "TokenUnavailable",
    "UnknownRefusal",
    "WebhookDelivery",
    "mint_message_id",
    "mint_session_id",
    "verify_webhook",
]
