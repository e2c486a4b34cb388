"""Which of the sessions that rest over a budget may go on, as Postgres finds them."""

from typing import TYPE_CHECKING

import pytest

from fairlead_projector import database
from fairlead_projector.sweep import Allowed, _affordable, _moving
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
)
from fairlead_schema.location import LocationRef
from fairlead_schema.prompt import Prompt
from fairlead_schema.subjects import Address

if TYPE_CHECKING:
    from services.projector.tests.conftest import Given, Projection

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
OVER = ExecutionReleased(generation=1, reason="over-budget")
POOR, OTHER = Address("poor", "ses_1"), Address("other", "ses_2")
OWN, PARKED = Address("poor", "ses_3"), Address("poor", "ses_4")


async def test_a_raised_limit_finds_those_that_rest_over_it_and_no_others(
    given: "Given", projection: "Projection"
) -> None:
    """Both limits count; one over its own budget stays; an interrupt nobody honours is found."""
    for at in (POOR, OTHER):
        given.commit(at, CREATED, ADMITTED, CLAIMED, STARTED, SPENT, OVER)
    given.commit(OWN, CREATED, BudgetSet(tokens=20), ADMITTED, CLAIMED, STARTED, SPENT, OVER)
    parked = ExecutionReleased(generation=1, reason="parked")
    given.commit(PARKED, CREATED, ADMITTED, CLAIMED, STARTED, parked, InterruptRequested())
    async with projection.running():
        await projection.until(projection.arrived)

    async with await database.connect(projection.dsn) as connection:

        async def found(*, cost: float | None, tokens: int | None) -> set[Address]:
            allowed = Allowed(("poor", "other"), (cost, 0.5), (tokens, None))
            return {at for at, _seq in await _affordable(connection, allowed)}

        assert await found(cost=2.0, tokens=None) == set()
        assert await found(cost=3.0, tokens=40) == set()
        assert await found(cost=3.0, tokens=41) == {POOR}
        assert await found(cost=None, tokens=None) == {POOR}
        assert {at for at, _seq in await _affordable(connection, Allowed())} == {POOR, OTHER}
        assert [at for at, _seq in (await _moving(connection))[0]] == [PARKED]
