"""Permissions and questions as permission requests of an editor, and its outcomes as our answers. Pure."""

from typing import Final

from acp import schema
from acp.helpers import text_block, tool_content, update_tool_call

from fairlead_cli.acp.translation.tool_calls import kind_of
from fairlead_schema.permission import PermissionRequest, QuestionInfo, QuestionRequest, Reply

DISMISS: Final = "dismiss"
_REPLIES: Final[dict[str, Reply]] = {"once": "once", "always": "always", "reject": "reject"}


def permission_call(request: PermissionRequest) -> schema.ToolCallUpdate:
    """The call that waits, with what it wants to do."""
    source = request.source
    resources = ", ".join(request.resources)
    diff = (request.metadata or {}).get("diff")
    shown = [tool_content(text_block(f"```diff\n{diff}\n```"))] if isinstance(diff, str) else None
    return update_tool_call(
        request.id if source is None else source.call_id,
        title=f"{request.action}: {resources}",
        kind=kind_of(request.action),
        status="pending",
        content=shown,
    )


def permission_options(request: PermissionRequest) -> list[schema.PermissionOption]:
    """What a person may reply. `always` is there only if the request can be saved."""
    saved = ", ".join(request.save or ())
    always = [
        schema.PermissionOption(
            option_id="always", name=f"Always allow {request.action} {saved}", kind="allow_always"
        )
    ]
    return [
        schema.PermissionOption(option_id="once", name="Allow once", kind="allow_once"),
        *(always if request.save else []),
        schema.PermissionOption(option_id="reject", name="Reject", kind="reject_once"),
    ]


def reply_of(response: schema.RequestPermissionResponse) -> Reply | None:
    """The reply of a person; None if the editor gave the request up."""
    chosen = _choice_of(response)
    return None if chosen is None else _REPLIES.get(chosen, "reject")


def question_call(request: QuestionRequest, question: QuestionInfo) -> schema.ToolCallUpdate:
    """One question, shown as the call that asks it."""
    described = [f"- {one.label}: {one.description}" for one in question.options if one.description]
    text = "\n".join([question.question, *described])
    return update_tool_call(
        request.id if request.tool is None else request.tool.call_id,
        title=question.header or question.question,
        kind="other",
        status="pending",
        content=[tool_content(text_block(text))],
    )


def question_options(question: QuestionInfo) -> list[schema.PermissionOption]:
    """The labels to choose from. The protocol knows no free text and no several choices."""
    labels = [
        schema.PermissionOption(option_id=f"option:{index}", name=one.label, kind="allow_once")
        for index, one in enumerate(question.options)
    ]
    dismiss = schema.PermissionOption(option_id=DISMISS, name="Dismiss", kind="reject_once")
    return [*labels, dismiss]


def label_of(question: QuestionInfo, response: schema.RequestPermissionResponse) -> str | None:
    """The label that a person chose; None: the question was dismissed."""
    chosen = _choice_of(response) or DISMISS
    for index, one in enumerate(question.options):
        if chosen == f"option:{index}":
            return one.label
    return None


def is_given_up(response: schema.RequestPermissionResponse) -> bool:
    """Whether the editor cancelled the turn instead of answering."""
    return _choice_of(response) is None


def _choice_of(response: schema.RequestPermissionResponse) -> str | None:
    outcome = response.outcome
    return outcome.option_id if isinstance(outcome, schema.AllowedOutcome) else None
