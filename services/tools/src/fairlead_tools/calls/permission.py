"""Whether a call may begin: what it needs, against the rules of its agent and people's approvals."""

import asyncio
import logging
from dataclasses import dataclass
from functools import cache
from typing import Final

from fairlead_eventlog.register_ports import Approvals
from fairlead_schema.commands.quota import ALLOW_ALL, QuotaPolicy
from fairlead_schema.events import PermissionAsked, QuestionAsked
from fairlead_schema.permission import PermissionRule
from fairlead_service import ids
from fairlead_service.config.configuration import Config
from fairlead_service.locations import EVERYWHERE, TenantRoots
from fairlead_session.calls.lifecycle import Failed
from fairlead_session.people.asks import permission_for_call, question_for_call
from fairlead_session.people.permission import (
    AgentRules,
    Ask,
    Denied,
    Need,
    approval_rules,
    permit,
)
from fairlead_session.state.calls import UnsettledCall
from fairlead_session.state.session import Session
from fairlead_tools.calls.subagents import AgentModel, no_model
from fairlead_tools.registry.outcome import error_text, tool_crash, tool_failure
from fairlead_tools.registry.registry import PreparedCall
from fairlead_tools.registry.tool import CallContext, CallFailed, MayRead

log = logging.getLogger(__name__)

READ: Final = "read"
UNPERMITTED: Final = (
    "The call was stopped after its start and does not run again: now it would do something that"
    " nobody permitted"
)


def agent_rules(config: Config, agent: str | None) -> tuple[PermissionRule, ...] | None:
    """The rules of an agent. None for an unknown agent, which may do nothing."""
    name = config.agent_name(agent)
    return config.rules(name) if name in config.agents else None


@dataclass(frozen=True, slots=True)
class CallPolicy:
    """What calls may do, where, and how much: rules of agents, roots and quotas of tenants."""

    rules: AgentRules
    roots: TenantRoots = EVERYWHERE
    quotas: QuotaPolicy = ALLOW_ALL
    agent_model: AgentModel = no_model
    """The model that an agent has of its own. A sub-agent without one gets the model of its parent."""


@dataclass(frozen=True, slots=True)
class Permitted:
    """The call may begin, and may do what these needs say."""

    needs: tuple[Need, ...]


class PermissionCheck:
    """Checks the calls of one worker."""

    def __init__(self, approvals: Approvals, rules: AgentRules) -> None:
        self._approvals = approvals
        self._rules = rules

    async def check(
        self, session: Session, call: UnsettledCall, prepared: PreparedCall, context: CallContext
    ) -> PermissionAsked | QuestionAsked | Failed | Permitted:
        """What a person is asked first, why the call never runs, or that it may begin."""
        needs = await self._needs(prepared, context)
        if isinstance(needs, Failed):
            return needs
        refusal = permit(self._rules(call.agent), (), call.grants, needs)
        if isinstance(refusal, Ask):
            # Only an ask can be answered by an approval, so only an ask looks them up.
            approvals = await self._saved_approvals(session, context)
            refusal = permit(self._rules(call.agent), approvals, call.grants, needs)
        if isinstance(refusal, Denied):
            return tool_failure(refusal.message)
        if refusal is not None and call.worker is not None:
            # The call began with permission. Now it needs another one, or has lost the first.
            return tool_failure(UNPERMITTED)
        if refusal is not None:
            return permission_for_call(session.id, call, refusal.need, ids.permission_id())
        if prepared.tool.questions is not None:
            questions = prepared.tool.questions(prepared.input)
            return question_for_call(session.id, call, questions, ids.question_id())
        return Permitted(needs)

    async def read_filter(
        self, session: Session, call: UnsettledCall, context: CallContext
    ) -> MayRead:
        """Judges each file that a search finds as `read` of that file is judged."""
        rules, approvals = self._rules(call.agent), await self._saved_approvals(session, context)

        @cache
        def may_read(resource: str) -> bool:
            return permit(rules, approvals, call.grants, (Need(READ, (resource,)),)) is None

        return may_read

    async def _saved_approvals(
        self, session: Session, context: CallContext
    ) -> tuple[PermissionRule, ...]:
        assert session.profile is not None, "a session with calls was created"
        saved = await self._approvals.get_all(context.at.tenant, session.profile.project_id)
        return approval_rules(saved)

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
            # The needs come from the code of the tool: its crash is the failure of this call.
            log.exception(
                "permissions that the call needs cannot be determined: the call fails",
                extra={"tool": tool.name},
            )
            return tool_crash(error_text(error))
