"""Every operation of the gateway. Paths are matched in this order."""

from fairlead_gateway.http.operation import AnyOperation
from fairlead_gateway.routes.events import event, history, stream
from fairlead_gateway.routes.messages import context, message, messages, pending_inputs, prompt
from fairlead_gateway.routes.people import approval, permission, question
from fairlead_gateway.routes.server import catalog, health, location, tenant_usage, tool_output
from fairlead_gateway.routes.sessions import (
    changes,
    create,
    execution,
    explain,
    session,
    sessions,
    todo,
)

OPERATIONS: tuple[AnyOperation, ...] = (
    health.READ,
    location.READ,
    tenant_usage.READ,
    catalog.AGENTS,
    catalog.MODELS,
    permission.LIST_ALL_SESSIONS,
    approval.LIST,
    approval.REMOVE,
    question.LIST_ALL_SESSIONS,
    sessions.LIST,
    create.CREATE,
    sessions.ACTIVE,
    session.READ,
    changes.DELETE,
    prompt.ADMIT,
    pending_inputs.LIST,
    pending_inputs.CANCEL,
    pending_inputs.EDIT,
    execution.INTERRUPT,
    execution.RESUME,
    execution.COMPACT,
    execution.WAIT,
    execution.SHELL,
    execution.SKILL,
    changes.AGENT,
    changes.MODEL,
    changes.MOVE,
    changes.BUDGET,
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
