"""Every operation of the gateway, in the order in which paths are matched."""

from fairlead_gateway.operation import AnyOperation
from fairlead_gateway.routes import (
    catalog,
    context,
    create,
    event,
    health,
    history,
    location,
    message,
    messages,
    prompt,
    session,
    sessions,
    stream,
)

OPERATIONS: tuple[AnyOperation, ...] = (
    health.READ,
    location.READ,
    catalog.AGENTS,
    catalog.MODELS,
    sessions.LIST,
    create.CREATE,
    sessions.ACTIVE,
    session.READ,
    prompt.ADMIT,
    context.READ,
    history.READ,
    event.FOLLOW,
    stream.FOLLOW,
    messages.LIST,
    message.READ,
)
