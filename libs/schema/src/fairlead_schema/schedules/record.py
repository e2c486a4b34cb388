"""A schedule as it is stored, and what the hooks service notes of its runs."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, StringConstraints

from fairlead_schema.catalog import ModelRef
from fairlead_schema.commands.session import AgentName
from fairlead_schema.errors import WireError
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.identity.restrictions import Restrictions
from fairlead_schema.ids import MessageId, ScheduleId, SessionId
from fairlead_schema.location import LocationRef
from fairlead_schema.model import Model
from fairlead_schema.prompt import Delivery, PromptInput

MissedRuns: TypeAlias = Literal["skip", "once"]
"""What becomes of runs that nobody could start in time: nothing, or one run for all of them."""
SessionChoice: TypeAlias = Literal["new", "same"] | SessionId
"""Each run has a new session, all runs share one that the schedule makes, or they use this one."""
TimeZoneName: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=64)]


class ScheduleTiming(Model):
    """When a schedule is due: once at a time, or by a cron expression in a time zone."""

    at: int | None = None
    """Epoch milliseconds."""
    cron: str | None = None
    timezone: TimeZoneName = "UTC"
    missed: MissedRuns = "once"


class ScheduleRecord(Model):
    """A schedule."""

    id: ScheduleId
    name: str | None = None
    timing: ScheduleTiming
    prompt: PromptInput
    delivery: Delivery = "queue"
    session: SessionChoice = "new"
    agent: AgentName | None = None
    model: ModelRef | None = None
    location: LocationRef | None = None
    paused: bool = False
    by: PrincipalName | None = None
    """Who wrote the schedule last. Its runs are this principal's."""
    restrictions: Restrictions | None = None
    created: int
    changed: int
    since: int
    """Only times after this one are due: when the schedule was made, resumed, or got its timing."""


RunOutcome: TypeAlias = Literal["started", "admitted", "refused", "skipped"]


class ScheduleRun(Model):
    """What became of one due time."""

    due: int
    outcome: RunOutcome
    time: int
    session_id: SessionId | None = None
    message_id: MessageId | None = None
    admitted_seq: int | None = None
    error: WireError | None = None


class ScheduleState(Model):
    """The last run of a schedule. Due times up to its own are handled."""

    last: ScheduleRun
    worker: Annotated[str, Field(repr=False)]
    """Which process handles or handled it."""
