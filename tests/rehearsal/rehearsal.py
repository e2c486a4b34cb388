"""The steps of a rehearsal, in order: start, upgrade, lose a node, back up, restore, audit."""

import asyncio
import json
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from fairlead_testing.releases import Release, unpack_earlier_release
from tests.rehearsal.audit import read_audit
from tests.rehearsal.cursor import Cursor, read_cursor, use_cursor
from tests.rehearsal.deployment import JOBS, NEW, NODES, ORDER, Deployment, run_deployment
from tests.rehearsal.load import Acknowledged, Clients, Load
from tests.rehearsal.report import Report
from tests.rehearsal.verdict import find_unfinished, judge, read_logs

SESSIONS: Final = 12
"""How many sessions end between two steps, so that each step meets work of every kind."""
REST_S_MAX: Final = 180.0
WITHOUT_NODE_S: Final = 5.0


class Rehearsal:
    """One run. Steps that wait for processes run in a thread, beside the clients."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._report = Report()
        self._load = Load()

    async def run(self) -> Report:
        """Everything, to the report. Raises what no deployment may do."""
        with self._report.step("unpack the release before this one"):
            earlier = unpack_earlier_release(self._root)
        assert earlier.sources is not None
        with run_deployment(self._root / "first", [earlier.sources]) as first:
            moment, cursor = await self._live_through(first, earlier)
        with run_deployment(self._root / "second") as second:
            await self._restore(first, second, moment, cursor)
        self._report.load = self._load.counts
        self._report.noticed = self._load.noticed
        self._report.longest_s = round(self._load.longest_s, 1)
        return self._report

    async def _live_through(self, first: Deployment, earlier: Release) -> tuple[float, Cursor]:
        """The life of the first deployment; the answer is when its backup began, and a client's cursor."""
        with self._report.step("start the earlier release"):
            await asyncio.to_thread(first.start, (*NODES, "postgres", "sim"))
            await asyncio.to_thread(first.start, (*JOBS, *ORDER), earlier)
            _write_env_file(first)
        async with self._clients(first) as clients:
            with self._report.step("load"):
                await clients.wait_for_sessions(SESSIONS)
            await self._upgrade(first, clients)
            await self._lose_node(first, clients)
            with self._report.step("back up under load") as step:
                moment = time.time()
                written = await asyncio.to_thread(first.fairlead, "backup", "/backup/one", "--json")
                step.detail = f"{json.loads(written)['commits']} commits"
            with self._report.step("more load"):
                await clients.wait_for_sessions(SESSIONS)
                await clients.stop()
        await self._check(first, "first deployment", self._load.acknowledged)
        return moment, await read_cursor(first, self._load.acknowledged[0].session)

    async def _upgrade(self, first: Deployment, clients: Clients) -> None:
        for name in JOBS:
            with self._report.step(f"upgrade: {name}"):
                await asyncio.to_thread(first.start, [name])
        for name in ORDER:
            with self._report.step(f"upgrade: {name}"):
                await asyncio.to_thread(first.replace, name)
                await clients.wait_for_sessions(1)
        with self._report.step(f"start what is new: {', '.join(NEW)}"):
            await asyncio.to_thread(first.start, NEW)
        with self._report.step("finalise") as step:
            said = await asyncio.to_thread(first.fairlead, "provision", "--finalise")
            step.detail = next((line for line in said.splitlines() if "level" in line), "").strip()

    async def _lose_node(self, first: Deployment, clients: Clients) -> None:
        with self._report.step("lose a node with its disk"):
            await asyncio.to_thread(first.lose_node, "nats-2")
            await asyncio.sleep(WITHOUT_NODE_S)
            await clients.wait_for_sessions(1)
        with self._report.step("the node comes back empty") as step:
            await asyncio.to_thread(first.start, ["nats-2"])
            streams = await asyncio.to_thread(first.wait_until_whole)
            step.detail = f"{streams} streams have three copies again"
            await clients.wait_for_sessions(1)

    async def _restore(
        self, first: Deployment, second: Deployment, moment: float, cursor: Cursor
    ) -> None:
        shutil.copytree(first.backups, second.backups, dirs_exist_ok=True)
        with self._report.step("restore into new servers"):
            await asyncio.to_thread(second.start, (*NODES, "postgres", "sim"))
            await asyncio.to_thread(second.fairlead, "restore", "/backup/one", "--json")
        with self._report.step("start the services on it"):
            await asyncio.to_thread(second.start, (*JOBS, *ORDER, *NEW))
            _write_env_file(second)
        kept = self._load.before(moment)
        with self._report.step("clients notice the restore") as step:
            step.detail = await use_cursor(second, cursor)
        with self._report.step("load on the restored log"):
            before = len(self._load.acknowledged)
            async with self._clients(second) as clients:
                await clients.wait_for_sessions(SESSIONS)
                await clients.stop()
        await self._check(second, "restored", [*kept, *self._load.acknowledged[before:]])

    async def _check(
        self, deployment: Deployment, name: str, acknowledged: list[Acknowledged]
    ) -> None:
        """Wait until everything rests, then hold the log against every promise, twice.

        A session that asked just before the backup asks again after the restore: a person answers.
        """
        person = Clients(self._load, deployment.url, deployment.headers)
        with self._report.step(f"rest and verify ({name})") as step:
            deadline = time.monotonic() + REST_S_MAX
            while True:
                export = deployment.backups / f"{name.split(maxsplit=1)[0]}.log"
                await asyncio.to_thread(
                    deployment.fairlead, "verify", "--export", f"/backup/{export.name}"
                )
                logs = read_logs(export)
                unfinished = find_unfinished(logs)
                if not unfinished or time.monotonic() > deadline:
                    break
                for session in unfinished:
                    await person.answer_asks(session)
                await asyncio.sleep(1)
            await person.abandon()
            for kind, texts in judge(logs, acknowledged).items():
                self._report.broken[kind] += [f"{name}: {text}" for text in texts]
            step.detail = f"{len(logs)} sessions, {len(acknowledged)} acknowledged prompts"
        with self._report.step(f"audit ({name})") as step:
            audit = await read_audit(deployment)
            step.detail = audit.text
            self._report.audit.append(f"{name}: {audit.text}")
            self._report.broken["other"] += [f"{name}: {text}" for text in audit.violations]

    @asynccontextmanager
    async def _clients(self, deployment: Deployment) -> AsyncIterator[Clients]:
        clients = Clients(self._load, deployment.url, deployment.headers)
        clients.start()
        try:
            yield clients
        finally:
            await clients.abandon()


def _write_env_file(deployment: Deployment) -> None:
    """A file that nobody may read without a person's answer."""
    (deployment.topology.volume("workspaces") / ".env").write_text("TIDE=high\n")
