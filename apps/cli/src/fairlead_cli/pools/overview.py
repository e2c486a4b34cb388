"""What each pool does now: its workers, the calls that wait for one, and its sessions."""

from collections import Counter
from typing import NamedTuple

from fairlead_cli.pools.sessions import read_sessions
from fairlead_eventlog.jetstream.connect import connect_over
from fairlead_eventlog.jetstream.link import NatsLink
from fairlead_eventlog.streams import TOOLS, tools_consumer
from fairlead_schema.tools.pool_rules import PoolRules
from fairlead_service.config.configuration import Config


class PoolState(NamedTuple):
    """One pool."""

    pool: str
    workers: int
    waiting: int
    oldest_age_s: float
    sessions: int
    note: str


async def read_pools(link: NatsLink, config: Config, pools: PoolRules) -> list[PoolState]:
    """Every pool of the rules, and every other one that has workers or sessions."""
    async with connect_over(link) as eventlog:
        services = await eventlog.operations.services()
        ages = await eventlog.waiting_work.read_all()
    workers = Counter(instance.pool for instance in services if instance.pool is not None)
    queues = {age.consumer: age for age in ages if age.stream == TOOLS.name}
    listed = (session for session in read_sessions(config) if not session.archived)
    sessions = Counter(session.pool or pools.default for session in listed)
    others = sorted({*workers, *sessions} - set(pools.names))
    states = []
    for name in (*pools.names, *others):
        queue = queues.get(tools_consumer(name))
        waiting, age_s = (0, 0.0) if queue is None else (queue.waiting, queue.oldest_age_s)
        note = _note(name, pools, workers[name], has_queue=queue is not None)
        states.append(PoolState(name, workers[name], waiting, age_s, sessions[name], note))
    return states


def _note(name: str, pools: PoolRules, workers: int, *, has_queue: bool) -> str:
    if name not in pools.names:
        return "in no rule of this configuration"
    if not has_queue:
        return "no consumer: run `fairlead provision`"
    if not workers:
        return f"no worker: start one with tools.pool = {name}"
    return "default" if name == pools.default else ""
