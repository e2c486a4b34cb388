"""The verbs of registered context sources: register, remove, and announce a change."""

from fairlead_schema.context import (
    RemoveSource,
    SourceChanged,
    SourceRegistration,
    SourceRegistrations,
)
from fairlead_service.audit import audit_command
from fairlead_service.rpc.server import RpcServer, TenantParam
from fairlead_tools.context.observe import Observer
from fairlead_tools.context.registered import RegisteredSources


class SourceVerbs:
    """Performs the verbs on the sources of an observer."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    def serve(self, server: RpcServer) -> None:
        """Serve the verbs for every tenant."""
        server.serve_verb("source.register", self.register)
        server.serve_verb("source.remove", self.remove)
        server.serve_verb("source.changed", self.announce)

    async def register(
        self, tenant: TenantParam, command: SourceRegistration
    ) -> SourceRegistration:
        """`source.register`"""
        registered = await self._sources().register(tenant, command)
        audit_command("source.register", tenant, command.key)
        return registered

    async def remove(self, tenant: TenantParam, command: RemoveSource) -> SourceRegistrations:
        """`source.remove`"""
        left = await self._sources().remove(tenant, command)
        audit_command("source.remove", tenant, command.key)
        return left

    async def announce(self, tenant: TenantParam, command: SourceChanged) -> SourceChanged:
        """`source.changed`"""
        return await self._sources().announce(tenant, command)

    def _sources(self) -> RegisteredSources:
        assert self._observer.registered_sources is not None, (
            "the server answers only while the log is connected"
        )
        return self._observer.registered_sources
