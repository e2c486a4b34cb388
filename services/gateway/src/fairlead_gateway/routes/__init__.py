"""Every operation of the gateway, in the order in which paths are matched."""

from fairlead_gateway.http.operation import AnyOperation
from fairlead_gateway.routes.events import event, history, stream
from fairlead_gateway.routes.messages import context, message, messages, pending, prompt
from fairlead_gateway.routes.people import approval, permission, question
from fairlead_gateway.routes.server import catalog, health, location, tool_output
from fairlead_gateway.routes.sessions import (
    change,
    control,
    create,
    explain,
    session,
    sessions,
    todo,
)

OPERATIONS: tuple[AnyOperation, ...] = (
    health.READ,
    location.READ,
    catalog.AGENTS,
    catalog.MODELS,
    permission.EVERYWHERE,
    approval.LIST,
    approval.REMOVE,
    question.EVERYWHERE,
    sessions.LIST,
    create.CREATE,
    sessions.ACTIVE,
    session.READ,
    change.DELETE,
    prompt.ADMIT,
    pending.LIST,
    pending.CANCEL,
    pending.EDIT,
    control.INTERRUPT,
    control.RESUME,
    control.COMPACT,
    control.WAIT,
    control.SHELL,
    control.SKILL,
    change.AGENT,
    change.MODEL,
    change.MOVE,
    change.BUDGET,
    permission.LIST,
    permission.ASK,
    permission.READ,
    permission.REPLY,
    question.LIST,
    question.REPLY,
    question.REJECT,
    todo.READ,
    explain.READ,
    context.READ,
    history.READ,
    event.FOLLOW,
    stream.FOLLOW,
    messages.LIST,
    message.READ,
    tool_output.READ,
)
