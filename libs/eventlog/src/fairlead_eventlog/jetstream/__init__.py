"""The ports on NATS: one file per adapter."""

from importlib import import_module

from fairlead_eventlog.jetstream.light_import import defer_module, hide_package

# nats-py speaks web sockets through aiohttp, which is 9 MB in every process. Its own API of
# JetStream is half of its import, and Fairlead has another one.
with hide_package("aiohttp"), defer_module("nats.js"):
    import_module("nats.aio.client")
