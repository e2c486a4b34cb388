"""The dependencies that all drains of one runner share."""

from dataclasses import dataclass, field

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.quotas.running_quota import RunningQuota
from fairlead_eventlog.quotas.tenant_totals import TenantTotalsReader
from fairlead_eventlog.session_cache import SessionCache
from fairlead_eventlog.session_writer import SessionWriter
from fairlead_eventlog.slots import Slots
from fairlead_llm.transport import Clients
from fairlead_runner.calls.catalogs import Catalogs
from fairlead_runner.file_snapshot_client import FileSnapshotClient
from fairlead_runner.settings import RunnerSettings
from fairlead_runner.tenant_usage import TenantUsageReader
from fairlead_runner.transforms.chain import TransformChain
from fairlead_runner.transforms.plugins import Plugin, load_plugins
from fairlead_runner.transforms.registered import RegisteredTransforms
from fairlead_runner.turn.context_observer import ContextObserver
from fairlead_runner.turn.lowered_histories import LoweredHistories
from fairlead_runner.turn.stored_media import StoredMedia
from fairlead_schema.delta import OpenText
from fairlead_schema.ids import RunnerId
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_service.quota_metrics import QUOTA_UNKNOWN
from fairlead_session.fold.snapshot import SESSION_FOLD
from fairlead_session.state.session import Session
from fairlead_session.turn.stream import TurnStream


@dataclass(frozen=True, slots=True)
class RunnerContext:
    """The runner's id, its connections, its caches and its settings."""

    runner: RunnerId
    eventlog: EventLog
    sessions: SessionCache[Session]
    session_writer: SessionWriter[Session]
    clients: Clients
    settings: RunnerSettings
    catalogs: Catalogs
    observer: ContextObserver
    file_snapshots: FileSnapshotClient
    tenant_usage: TenantUsageReader
    turn_quota: RunningQuota
    places: Slots
    """The places for sessions that this runner drains at once."""
    lowered_histories: LoweredHistories
    transforms: TransformChain
    stored_media: StoredMedia
    open_streams: dict[Address, TurnStream] = field(default_factory=dict)
    """The answers that are being written now, for readers that come in the middle."""

    def find_open_texts(self, at: Address) -> tuple[OpenText, ...]:
        """The text so far of the open blocks of a session."""
        stream = self.open_streams.get(at)
        return () if stream is None else stream.so_far()

    def pool_of(self, session: Session) -> str:
        """The pool whose workers serve a session."""
        assert session.profile is not None, "a session that drains was created"
        return session.profile.serving_pool(self.settings.config.pools.default)


def build_context(
    runner: RunnerId,
    eventlog: EventLog,
    clients: Clients,
    settings: RunnerSettings,
    plugins: tuple[Plugin, ...] | None = None,
) -> RunnerContext:
    """The context of a runner that uses these connections. Raises ConfigError for a missing plugin."""
    config = settings.config
    plugins = load_plugins(config) if plugins is None else plugins
    sessions = SessionCache(
        eventlog.log,
        eventlog.snapshots,
        SESSION_FOLD,
        capacity=config.runner.cache_sessions_max,
        bytes_max=config.runner.cache_bytes_max,
    )
    session_writer = SessionWriter(eventlog.log, sessions, ids, patience_s=config.nats.patience_s)
    eventlog.status.on_restore(session_writer.forget_all)
    pool, timeout_s = config.pools.default, config.runner.observe_timeout_s
    fresh_s = settings.timings.catalog_fresh_s
    catalogs = Catalogs(eventlog, pool=pool, timeout_s=timeout_s, fresh_s=fresh_s)
    return RunnerContext(
        runner=runner,
        eventlog=eventlog,
        sessions=sessions,
        session_writer=session_writer,
        clients=clients,
        settings=settings,
        catalogs=catalogs,
        observer=ContextObserver(eventlog, catalogs, pool=pool, timeout_s=timeout_s),
        file_snapshots=FileSnapshotClient(eventlog, settings),
        tenant_usage=TenantUsageReader(eventlog, settings),
        places=Slots(config.runner.sessions_max),
        turn_quota=RunningQuota(
            "turns",
            TenantTotalsReader(eventlog.requests),
            config.quota_policy,
            on_unknown=QUOTA_UNKNOWN.inc,
        ),
        lowered_histories=LoweredHistories(sessions_max=config.runner.cache_sessions_max),
        transforms=TransformChain(config.runner, plugins, RegisteredTransforms(eventlog)),
        stored_media=StoredMedia(eventlog.attachments),
    )
