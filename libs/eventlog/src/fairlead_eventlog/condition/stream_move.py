"""Moves a stream into one of another kind with its messages, their sequences and its consumers.

The server changes the persist mode of no stream. So the messages go through a copy and back, by mirrors,
which keep every sequence. Each step finds what an earlier, interrupted move left (docs/adr/0035).
"""

import asyncio
import json
from typing import Any, Final

from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.grants.granted_names import copy_name
from fairlead_eventlog.jetstream.link import NO_STREAM, NatsLink, ServerRefusal
from fairlead_eventlog.streams import StreamSpec
from fairlead_schema.subjects import ROOT

_CONSUMERS: Final = "fairlead-consumers"
_COPY_S_MAX: Final = 600.0
_LOOK_S: Final = 0.1
# What a mirror may have, and what cannot be changed when it becomes a stream of its own.
_MIRRORED: Final = (
    *("name", "description", "storage", "retention"),
    *("num_replicas", "allow_direct", "persist_mode"),
)


async def is_moving(link: NatsLink, spec: StreamSpec) -> bool:
    """Whether a move of this stream was begun and not finished."""
    if await _info(link, copy_name(spec.name)) is not None:
        return True
    info = await _info(link, spec.name)
    return info is not None and info["config"].get("subjects") == [_parked_subject(spec.name)]


async def move_stream(link: NatsLink, spec: StreamSpec, wanted: dict[str, Any]) -> None:
    """Make a stream anew as it is wanted, with all it holds. Writers are refused meanwhile.

    Raises ServerRefusal and LogUnavailable; the same call then goes on where this one stopped.
    """
    name, copy = spec.name, copy_name(spec.name)
    old, kept = await _info(link, name), await _info(link, copy)
    if old is not None and not _is_new(old, wanted):
        await _park(link, old)
        if kept is None:
            consumers = {_CONSUMERS: json.dumps(await _read_consumers(link, name))}
            config = _mirror(wanted | {"name": copy, "persist_mode": "default"}, name)
            await link.api(f"STREAM.CREATE.{copy}", config | {"metadata": consumers})
        kept = await _wait_until_equal(link, copy, name)
        await _promote(link, kept["config"], {"subjects": [_parked_subject(copy)]})
        await link.api(f"STREAM.DELETE.{name}")
        old = None
    if old is None:
        await link.api(f"STREAM.CREATE.{name}", _mirror(wanted, copy))
    if old is None or "mirror" in old["config"]:
        restored = await _wait_until_equal(link, name, copy)
        await _promote(link, restored["config"], wanted)
    await _restore_consumers(link, name, copy)
    await link.api(f"STREAM.DELETE.{copy}")


def _is_new(info: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Whether a stream is of the wanted kind already."""
    mode = str(info["config"].get("persist_mode", "default"))
    return mode == str(wanted.get("persist_mode", "default"))


async def _park(link: NatsLink, info: dict[str, Any]) -> None:
    """Take the subjects from a stream: who writes now is refused, and writes again later."""
    name = info["config"]["name"]
    await link.api(f"STREAM.UPDATE.{name}", info["config"] | {"subjects": [_parked_subject(name)]})


def _parked_subject(stream: str) -> str:
    """A subject that nobody writes. A stream has to have one."""
    return f"{ROOT}.moved.{stream}"


def _mirror(config: dict[str, Any], source: str) -> dict[str, Any]:
    kept = {key: config[key] for key in _MIRRORED if key in config}
    return kept | {"mirror": {"name": source}}


async def _promote(link: NatsLink, config: dict[str, Any], changes: dict[str, Any]) -> None:
    """Make a mirror a stream of its own."""
    own = {key: value for key, value in config.items() if key != "mirror"}
    await link.api(f"STREAM.UPDATE.{config['name']}", own | changes)


async def _wait_until_equal(link: NatsLink, copy: str, source: str) -> dict[str, Any]:
    """Wait until a mirror has all of its source; what the server says of it then."""
    async with asyncio.timeout(_COPY_S_MAX):
        while True:
            theirs, ours = await _info(link, source), await _info(link, copy)
            if theirs is None or ours is None:
                raise LogUnavailable(f"{source} or {copy} disappeared while it was copied")
            if _extent(theirs) == _extent(ours):
                return ours
            await asyncio.sleep(_LOOK_S)


def _extent(info: dict[str, Any]) -> tuple[int, int]:
    return int(info["state"]["last_seq"]), int(info["state"]["messages"])


async def _read_consumers(link: NatsLink, stream: str) -> list[dict[str, Any]]:
    """The durable consumers of a stream, each as it continues after what was acknowledged."""
    found: list[dict[str, Any]] = []
    while True:
        answer = await link.api(f"CONSUMER.LIST.{stream}", {"offset": len(found)})
        page = answer.get("consumers") or []
        found += page
        if not page or len(found) >= int(answer.get("total", 0)):
            break
    return [
        consumer["config"]
        | {
            "deliver_policy": "by_start_sequence",
            "opt_start_seq": int(consumer["ack_floor"]["stream_seq"]) + 1,
        }
        for consumer in found
        if consumer["config"].get("durable_name")
    ]


async def _restore_consumers(link: NatsLink, stream: str, copy: str) -> None:
    kept = await _info(link, copy)
    metadata = {} if kept is None else kept["config"].get("metadata") or {}
    for config in json.loads(metadata.get(_CONSUMERS, "[]")):
        body = {"stream_name": stream, "config": config | {"num_replicas": 0}}
        await link.api(f"CONSUMER.CREATE.{stream}.{config['name']}", body)


async def _info(link: NatsLink, stream: str) -> dict[str, Any] | None:
    try:
        return await link.api(f"STREAM.INFO.{stream}")
    except ServerRefusal as refusal:
        if refusal.code == NO_STREAM:
            return None
        raise
