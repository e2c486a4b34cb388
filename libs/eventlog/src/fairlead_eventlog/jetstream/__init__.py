"""The ports on NATS: one file per adapter."""

from fairlead_eventlog.jetstream.light_import import import_without

# nats-py speaks web sockets through aiohttp, which is 9 MB in every process.
import_without("aiohttp", "nats.aio.transport")
