"""Ingest as a process: its verbs over NATS, the durable intake, the service shell."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from starlette.applications import Starlette

from fairlead_eventlog.jetstream.client import open_client
from fairlead_eventlog.jetstream.connect import connect
from fairlead_eventlog.jetstream.local_requests import LocalRequests
from fairlead_eventlog.refusals import LOG_REFUSALS
from fairlead_ingest.command_context import CONTEXT, CommandContext
from fairlead_ingest.dead_uploads import remove_dead_uploads
from fairlead_ingest.intake import admit_published_prompts
from fairlead_ingest.metrics import PromptCount
from fairlead_ingest.settings import IngestSettings
from fairlead_ingest.verbs import location_files
from fairlead_ingest.verbs.execution.budget import budget
from fairlead_ingest.verbs.execution.compact import compact
from fairlead_ingest.verbs.execution.explain import explain
from fairlead_ingest.verbs.execution.interrupt import interrupt
from fairlead_ingest.verbs.execution.resume import resume
from fairlead_ingest.verbs.execution.wait import wait
from fairlead_ingest.verbs.feed import open_feed
from fairlead_ingest.verbs.history import read_history
from fairlead_ingest.verbs.hooks import schedules, webhooks
from fairlead_ingest.verbs.hooks.purge import purge
from fairlead_ingest.verbs.input.cancel import cancel
from fairlead_ingest.verbs.input.edit import edit
from fairlead_ingest.verbs.input.pending import pending
from fairlead_ingest.verbs.input.prompt import prompt
from fairlead_ingest.verbs.input.shell import shell
from fairlead_ingest.verbs.input.skill import skill
from fairlead_ingest.verbs.input.upload import upload
from fairlead_ingest.verbs.people import approval, permission, question
from fairlead_ingest.verbs.people.expire import expire
from fairlead_ingest.verbs.profile.agent import agent
from fairlead_ingest.verbs.profile.archive import archive, unarchive
from fairlead_ingest.verbs.profile.create import create
from fairlead_ingest.verbs.profile.delete import delete
from fairlead_ingest.verbs.profile.describe import describe
from fairlead_ingest.verbs.profile.get import get
from fairlead_ingest.verbs.profile.model import model
from fairlead_ingest.verbs.profile.move import move
from fairlead_ingest.verbs.repeated_command import answer_once
from fairlead_ingest.verbs.revert import revert
from fairlead_ingest.verbs.transfer.check import check
from fairlead_ingest.verbs.transfer.claim import claim
from fairlead_ingest.verbs.transfer.fork import fork
from fairlead_ingest.verbs.transfer.output import read_output, store_output
from fairlead_ingest.verbs.transfer.page import read_page
from fairlead_ingest.verbs.transfer.replay import replay
from fairlead_ingest.verbs.transfer.store import store
from fairlead_schema.identity.verbs import KEYED
from fairlead_service.health import Health
from fairlead_service.process import application
from fairlead_service.rpc.server import Handler, RpcServer
from fairlead_service.rpc.thin_path import Perform
from fairlead_service.rpc.verb_metrics import RequestCount
from fairlead_service.supervise import Restarts, cancel_and_wait


class Ingest:
    """The verbs of ingest on one connection."""

    def __init__(self, settings: IngestSettings, local: LocalRequests | None = None) -> None:
        self._settings = settings
        self._local = local
        self._context: CommandContext | None = None
        self.server = RpcServer(
            partial(open_client, settings.nats),
            name="ingest",
            refusals=LOG_REFUSALS,
            local=local,
        )
        self._serve_sessions()
        self._serve_asks()
        self._serve_transfers()
        self._serve_hooks()

    def _serve_sessions(self) -> None:
        self._serve("session.create", create)
        self._serve(
            "session.prompt",
            prompt,
            lambda tenant, command: prompt(self.context, tenant, command),
            PromptCount("verb"),
        )
        self._serve("session.cancel", cancel)
        self._serve("session.edit", edit)
        self._serve("session.interrupt", interrupt)
        self._serve("session.resume", resume)
        self._serve("session.agent", agent)
        self._serve("session.model", model)
        self._serve("session.move", move)
        self._serve("session.describe", describe)
        self._serve("session.archive", archive)
        self._serve("session.unarchive", unarchive)
        self._serve("session.delete", delete)
        self._serve("session.compact", compact)
        self._serve("session.budget", budget)
        self._serve("revert.stage", revert.stage)
        self._serve("revert.clear", revert.clear)
        self._serve("revert.commit", revert.commit)
        self._serve("session.pending", pending)
        self._serve("session.get", get)
        self._serve(
            "session.history",
            read_history,
            lambda tenant, command: read_history(self.context, tenant, command),
        )
        self._serve("session.explain", explain)
        self._serve("session.wait", wait)
        self._serve("session.shell", shell)
        self._serve("session.skill", skill)

    def _serve_asks(self) -> None:
        self._serve("permission.ask", permission.ask)
        self._serve("permission.reply", permission.reply)
        self._serve("permission.approve", permission.approve)
        self._serve("permission.list", permission.list_)
        self._serve("permission.get", permission.get)
        self._serve("permission.recheck", permission.recheck)
        self._serve("question.reply", question.reply)
        self._serve("question.reject", question.reject)
        self._serve("question.list", question.list_)
        self._serve("approval.list", approval.list_)
        self._serve("approval.remove", approval.remove)
        self._serve("ask.expire", expire)
        self._serve("feed.open", open_feed)

    def _serve_transfers(self) -> None:
        self._serve("transfer.check", check)
        self._serve("transfer.replay", replay)
        self._serve("transfer.output", store_output)
        self._serve("session.upload", upload)
        self._serve("transfer.claim", claim)
        self._serve("transfer.page", read_page)
        self._serve("transfer.read", read_output)
        self._serve("session.fork", fork)
        self._serve("session.store", store)
        self._serve("file.list", location_files.list_files)
        self._serve("file.read", location_files.read_file)
        self._serve("file.find", location_files.find_files)
        self._serve("skill.list", location_files.list_skills)

    def _serve_hooks(self) -> None:
        self._serve("webhook.create", webhooks.create)
        self._serve("webhook.list", webhooks.list_)
        self._serve("webhook.get", webhooks.get)
        self._serve("webhook.change", webhooks.change)
        self._serve("webhook.remove", webhooks.remove)
        self._serve("schedule.create", schedules.create)
        self._serve("schedule.list", schedules.list_)
        self._serve("schedule.get", schedules.get)
        self._serve("schedule.change", schedules.change)
        self._serve("schedule.remove", schedules.remove)
        self._serve("hook.purge", purge)

    @property
    def context(self) -> CommandContext:
        assert self._context is not None, "verbs are served while ingest is connected"
        return self._context

    @asynccontextmanager
    async def work(self, health: Health) -> AsyncIterator[None]:
        """Connect and serve. At the end, answer every accepted command and send its wake."""
        async with connect(
            self._settings.nats,
            name="fairlead-ingest",
            timeout_s=self._settings.request_timeout_s,
            append_patience_s=self._settings.patience_s,
            local=self._local,
        ) as eventlog:
            health.depend("nats", eventlog.complaint)
            self._context = CommandContext(eventlog, self._settings)
            self.server.provide(CONTEXT, self._context)
            await self.server.start()
            # Without its queue ingest still answers every verb.
            restarts = Restarts(complaint=None)
            health.want("intake", lambda: restarts.complaint)
            intake = asyncio.create_task(admit_published_prompts(self._context, restarts=restarts))
            life_s = self._settings.config.ingest.upload_life_s
            cleaning = asyncio.create_task(remove_dead_uploads(eventlog.attachments, life_s=life_s))
            try:
                yield
            finally:
                self._context.stopping.set()
                await cancel_and_wait(intake, cleaning)
                await self.server.stop()
                await self._context.waker.shutdown()

    def _serve(
        self,
        verb: str,
        handler: Handler,
        perform: Perform | None = None,
        count: RequestCount | None = None,
    ) -> None:
        keyed = answer_once(verb, handler) if verb in KEYED else handler
        self.server.serve_verb(verb, keyed, perform, count)


def build(settings: IngestSettings, local: LocalRequests | None = None) -> Starlette:
    """The ASGI application of ingest. Nothing connects until it starts."""
    health = Health()
    ingest = Ingest(settings, local)
    document = ingest.server.asyncapi_route("Fairlead ingest")
    return application("ingest", lambda: ingest.work(health), health, [document])
