"""Commands about schedules, and their answers."""

from typing import Annotated, Final, Self, TypeAlias

from pydantic import Field, StringConstraints, model_validator

from fairlead_schema.catalog import ModelRef
from fairlead_schema.commands.hooks.webhooks import HookName
from fairlead_schema.commands.session import AgentName
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.ids import ScheduleId
from fairlead_schema.location import LocationRef
from fairlead_schema.model import InputModel, Model, NoNull
from fairlead_schema.prompt import Delivery, PromptInput
from fairlead_schema.schedules.record import (
    MissedRuns,
    ScheduleRun,
    SessionChoice,
    TimeZoneName,
)

TIME_MS_MAX: Final = 253_402_300_799_999
"""The end of the year 9999."""
CronText: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=256)]
RunTime: TypeAlias = Annotated[int, Field(ge=0, le=TIME_MS_MAX)]


class CreateSchedule(InputModel):
    """`schedule.create`: send a prompt at a time, or again and again."""

    id: ScheduleId | None = None
    name: HookName | None = None
    at: RunTime | None = None
    """Once, at this time in epoch milliseconds. A time that is past is due at once."""
    cron: CronText | None = None
    """Five fields, or six with seconds first."""
    timezone: TimeZoneName = "UTC"
    """The zone of the cron expression, such as `Europe/Oslo`."""
    missed: MissedRuns = "once"
    prompt: PromptInput
    delivery: Delivery = "queue"
    session: SessionChoice = "new"
    agent: AgentName | None = None
    model: Annotated[ModelRef, NoNull] | None = None
    location: Annotated[LocationRef, NoNull] | None = None
    """Agent, model and location of the sessions that the schedule makes."""

    @model_validator(mode="after")
    def _check_one_time(self) -> Self:
        if (self.at is None) == (self.cron is None):
            raise ValueError("say when: either `at` or `cron`")
        return self


class ChangeScheduleBody(InputModel):
    """What to change. An absent key changes nothing; a change of `at` or `cron` begins anew."""

    name: HookName | None = None
    at: RunTime | None = None
    cron: CronText | None = None
    timezone: TimeZoneName | None = None
    missed: MissedRuns | None = None
    prompt: PromptInput | None = None
    paused: bool | None = None
    """A paused schedule starts nothing, and what was due meanwhile is not made up for."""

    @model_validator(mode="after")
    def _check_one_time(self) -> Self:
        if self.at is not None and self.cron is not None:
            raise ValueError("say `at` or `cron`, not both")
        return self


class ChangeSchedule(ChangeScheduleBody):
    """`schedule.change`: change a schedule, or pause it."""

    id: ScheduleId


class ScheduleQuery(InputModel):
    """`schedule.get`, `schedule.remove`: one schedule."""

    id: ScheduleId


class ListSchedules(InputModel):
    """`schedule.list`: list the schedules of a tenant. It has no fields."""


class ScheduleInfo(Model):
    """A schedule as callers see it."""

    id: ScheduleId
    name: str | None = None
    at: int | None = None
    cron: str | None = None
    timezone: str
    missed: MissedRuns
    prompt: PromptInput
    delivery: Delivery
    session: SessionChoice
    paused: bool
    next: int | None = None
    """When it is due next; absent while it is paused and after its last run."""
    last: ScheduleRun | None = None
    """What became of its last run."""
    by: PrincipalName | None = None
    created: int
    changed: int


class Schedules(Model):
    """The answer of `schedule.list`, oldest first."""

    schedules: tuple[ScheduleInfo, ...]
