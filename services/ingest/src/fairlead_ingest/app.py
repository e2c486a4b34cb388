"""Ingest as a process: its verbs over NATS, the durable intake, the service shell."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from starlette.applications import Starlette

from fairlead_eventlog.jetstream.connect import connect
from fairlead_ingest.answers import Command, Verb, answer
from fairlead_ingest.command_context import CommandContext
from fairlead_ingest.intake import take_in
from fairlead_ingest.settings import IngestSettings
from fairlead_ingest.verbs.execution.budget import budget
from fairlead_ingest.verbs.execution.compact import compact
from fairlead_ingest.verbs.execution.interrupt import interrupt
from fairlead_ingest.verbs.execution.resume import resume
from fairlead_ingest.verbs.execution.shell import shell, skill
from fairlead_ingest.verbs.input.cancel import cancel
from fairlead_ingest.verbs.input.edit import edit
from fairlead_ingest.verbs.input.pending import pending
from fairlead_ingest.verbs.input.prompt import prompt
from fairlead_ingest.verbs.people import approval, permission, question
from fairlead_ingest.verbs.people.expire import expire
from fairlead_ingest.verbs.profile.agent import agent
from fairlead_ingest.verbs.profile.archive import archive
from fairlead_ingest.verbs.profile.create import create
from fairlead_ingest.verbs.profile.delete import delete
from fairlead_ingest.verbs.profile.get import get
from fairlead_ingest.verbs.profile.model import model
from fairlead_ingest.verbs.profile.move import move
from fairlead_schema import subjects
from fairlead_schema.commands.asks import (
    AskPermission,
    ExpireAsk,
    ListApprovals,
    PermissionCommand,
    QuestionCommand,
    RemoveApproval,
    ReplyPermission,
    ReplyQuestion,
)
from fairlead_schema.commands.input import AdmitPrompt, CancelInput, EditPendingInput
from fairlead_schema.commands.session import (
    CreateSession,
    MoveSession,
    SessionCommand,
    SetBudget,
    SwitchAgent,
    SwitchModel,
)
from fairlead_service.health import Health
from fairlead_service.process import application
from fairlead_service.rpc import RpcServer


class Ingest:
    """The verbs of ingest on one connection."""

    def __init__(self, settings: IngestSettings) -> None:
        self._settings = settings
        self._desk: CommandContext | None = None
        self.carrier = RpcServer(settings.nats_url)
        self._serve_sessions()
        self._serve_asks()

    def _serve_sessions(self) -> None:
        self._serve("session.create", CreateSession, create)
        self._serve("session.prompt", AdmitPrompt, prompt)
        self._serve("session.cancel", CancelInput, cancel)
        self._serve("session.edit", EditPendingInput, edit)
        self._serve("session.interrupt", SessionCommand, interrupt)
        self._serve("session.resume", SessionCommand, resume)
        self._serve("session.agent", SwitchAgent, agent)
        self._serve("session.model", SwitchModel, model)
        self._serve("session.move", MoveSession, move)
        self._serve("session.archive", SessionCommand, archive)
        self._serve("session.delete", SessionCommand, delete)
        self._serve("session.compact", SessionCommand, compact)
        self._serve("session.budget", SetBudget, budget)
        self._serve("session.pending", SessionCommand, pending)
        self._serve("session.get", SessionCommand, get)
        self._serve("session.shell", SessionCommand, shell)
        self._serve("session.skill", SessionCommand, skill)

    def _serve_asks(self) -> None:
        self._serve("permission.ask", AskPermission, permission.ask)
        self._serve("permission.reply", ReplyPermission, permission.reply)
        self._serve("permission.list", SessionCommand, permission.list_)
        self._serve("permission.get", PermissionCommand, permission.get)
        self._serve("permission.recheck", PermissionCommand, permission.recheck)
        self._serve("question.reply", ReplyQuestion, question.reply)
        self._serve("question.reject", QuestionCommand, question.reject)
        self._serve("question.list", SessionCommand, question.list_)
        self._serve("approval.list", ListApprovals, approval.list_)
        self._serve("approval.remove", RemoveApproval, approval.remove)
        self._serve("ask.expire", ExpireAsk, expire)

    @property
    def desk(self) -> CommandContext:
        assert self._desk is not None, "verbs are served while the desk is open"
        return self._desk

    @asynccontextmanager
    async def work(self, health: Health) -> AsyncIterator[None]:
        """Connect, serve, and drain on the way out: what was accepted is answered and woken."""
        async with connect(
            self._settings.nats_url,
            name="fairlead-ingest",
            timeout_s=self._settings.request_timeout_s,
        ) as eventlog:
            health.depend("nats", eventlog.complaint)
            self._desk = CommandContext(eventlog, self._settings)
            await self.carrier.start()
            intake = asyncio.create_task(take_in(self._desk))
            try:
                yield
            finally:
                intake.cancel()
                with suppress(asyncio.CancelledError):
                    await intake
                await self.carrier.stop()
                await self._desk.waker.settle()

    def _serve(self, verb: str, command: type[Command], perform: Verb[Command]) -> None:
        async def reply(subject: str, body: bytes) -> bytes:
            tenant = subject.split(".")[2]
            return await answer(self.desk, tenant, body, command, perform)

        self.carrier.respond(
            subjects.api("*", verb),
            queue="ingest",
            title=verb,
            command=command,
            reply=reply,
        )


def build(settings: IngestSettings) -> Starlette:
    """The ASGI application of ingest. Nothing connects until it starts."""
    health = Health()
    ingest = Ingest(settings)
    document = ingest.carrier.asyncapi("Fairlead ingest")
    return application(lambda: ingest.work(health), health, [document])
