"""The sessions over a budget that may go on, as a query finds them."""

from typing import TYPE_CHECKING

import pytest

from fairlead_projector import database
from fairlead_projector.stalls import StallDetector
from fairlead_projector.sweep import AffordableSessions, MovingSessions, TenantBudgets
from fairlead_schema.catalog import ModelRef, Tokens
from fairlead_schema.events import (
    BudgetSet,
    ExecutionClaimed,
    ExecutionReleased,
    InterruptRequested,
    PromptAdmitted,
    SessionCreated,
    StepEnded,
    StepStarted,
    ToolCalled,
)
from fairlead_schema.location import LocationRef
from fairlead_schema.prompt import Prompt
from fairlead_schema.subjects import Address
from fairlead_schema.tools.content import Executor

if TYPE_CHECKING:
    from services.projector.tests.conftest import LogBuilder, Projection

pytestmark = pytest.mark.integration

CREATED = SessionCreated(title="t", project_id="p", location=LocationRef(directory="/w"))
ADMITTED = PromptAdmitted(message_id="msg_1", prompt=Prompt(text="hi"), delivery="queue")
CLAIMED = ExecutionClaimed(generation=1, runner="run_1")
STARTED = StepStarted(
    assistant_message_id="msg_a", agent="build", model=ModelRef(id="fast", provider_id="acme")
)
SPENT = StepEnded(
    assistant_message_id="msg_a", finish="stop", cost=1.0, tokens=Tokens(input=10, output=10)
)
CALLED = ToolCalled(
    assistant_message_id="msg_a", call_id="c1", tool="bash", input={}, provider=Executor()
)
OVER = ExecutionReleased(generation=1, reason="over-budget")
POOR, OTHER = Address("poor", "ses_1"), Address("other", "ses_2")
OWN, PARKED = Address("poor", "ses_3"), Address("poor", "ses_4")


async def test_a_raised_limit_finds_those_that_rest_over_it_and_no_others(
    log_builder: "LogBuilder", projection: "Projection"
) -> None:
    """Both limits count, a session's own budget too; an open interrupt is found."""
    for at in (POOR, OTHER):
        log_builder.commit(at, CREATED, ADMITTED, CLAIMED, STARTED, SPENT, OVER)
    log_builder.commit(OWN, CREATED, BudgetSet(tokens=20), ADMITTED, CLAIMED, STARTED, SPENT, OVER)
    parking = ExecutionReleased(generation=1, reason="parked")
    log_builder.commit(
        PARKED, CREATED, ADMITTED, CLAIMED, STARTED, CALLED, parking, InterruptRequested()
    )
    async with projection.run():
        await projection.wait_until(projection.is_caught_up)

    async with await database.connect(projection.dsn) as connection:

        async def affordable(
            *, cost: float | None = None, tokens: int | None = None, other: float | None = 0.5
        ) -> set[Address]:
            limits = TenantBudgets(("poor", "other"), (cost, other), (tokens, None))
            stalls = StallDetector(age_s=0)
            await AffordableSessions(connection, limits).watch(stalls, now=0)
            return set(stalls.take_due(now=0))

        assert await affordable(cost=2.0) == set()
        assert await affordable(cost=3.0, tokens=40) == set()
        assert await affordable(cost=3.0, tokens=41) == {POOR}
        assert await affordable() == {POOR}
        assert await affordable(other=None) == {POOR, OTHER}
        moving = StallDetector(age_s=0)
        await MovingSessions(connection).watch(moving, now=0)
        assert moving.take_due(now=0) == [PARKED]
