"""Whether a call may begin: its needs against the rules of its agent and what people approved."""

import asyncio
import logging
from dataclasses import dataclass
from typing import Final

from fairlead_eventlog.ports import Approvals
from fairlead_schema.events import PermissionAsked, QuestionAsked
from fairlead_schema.permission import PermissionRule
from fairlead_service import ids
from fairlead_session.calls.lifecycle import Failed
from fairlead_session.people import asks
from fairlead_session.people.asks import AgentRules, Denied, permit
from fairlead_session.people.permission import Need
from fairlead_session.state.calls import UnsettledCall
from fairlead_session.state.session import Session
from fairlead_tools.calls.execution import error_text, tool_crash, tool_failure
from fairlead_tools.registry.registry import PreparedCall
from fairlead_tools.registry.tool import CallContext, CallFailed

log = logging.getLogger(__name__)

UNPERMITTED: Final = (
    "The call was stopped when it had begun, and may not run again: what it would do now is not"
    " what was permitted"
)


@dataclass(frozen=True, slots=True)
class Permitted:
    """The call may begin, to do this and nothing else."""

    needs: tuple[Need, ...]


class PermissionCheck:
    """Decides for every call of one worker."""

    def __init__(self, approvals: Approvals, rules: AgentRules) -> None:
        self._approvals = approvals
        self._rules = rules

    async def decide(
        self, session: Session, call: UnsettledCall, prepared: PreparedCall, context: CallContext
    ) -> PermissionAsked | QuestionAsked | Failed | Permitted:
        """What a person is asked first, why the call never runs, or that it may begin."""
        needs = await self._needs(prepared, context)
        if isinstance(needs, Failed):
            return needs
        found = permit(self._rules(call.agent), (), call.grants, needs)
        if isinstance(found, asks.Ask):
            # Approvals are only looked up where they can change something.
            saved = await self._saved(session, context)
            found = permit(self._rules(call.agent), saved, call.grants, needs)
        if isinstance(found, Denied):
            return tool_failure(found.message)
        if found is not None and call.worker is not None:
            # What it did when it began was permitted; this is something else, or no longer is.
            return tool_failure(UNPERMITTED)
        if found is not None:
            return asks.ask_permission(session.id, call, found.need, ids.permission_id())
        if prepared.tool.questions is not None:
            asked = prepared.tool.questions(prepared.input)
            return asks.ask_question(session.id, call, asked, ids.question_id())
        return Permitted(needs)

    async def _saved(self, session: Session, context: CallContext) -> tuple[PermissionRule, ...]:
        assert session.profile is not None, "a session with calls was created"
        saved = await self._approvals.get_all(context.at.tenant, session.profile.project_id)
        return asks.approval_rules(saved)

    async def _needs(
        self, prepared: PreparedCall, context: CallContext
    ) -> tuple[Need, ...] | Failed:
        tool = prepared.tool
        try:
            async with asyncio.timeout(tool.timeout_s):
                return await tool.required_permissions(prepared.input, context)
        except CallFailed as error:
            return tool_failure(error_text(error))
        except TimeoutError:
            return tool_crash(f"no answer within {tool.timeout_s:g} s")
        except Exception as error:
            # What a tool needs is the tool's own code: its crash is this call's failure.
            log.exception("needs cannot be told", extra={"tool": tool.name})
            return tool_crash(error_text(error))
