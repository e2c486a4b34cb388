"""Runs the commands of the terminal: `/model`, `/undo`, `/export` and the others."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

from pydantic import ValidationError

from fairlead_cli.boundaries import redo_boundary, undo_boundary
from fairlead_cli.chat.chat_start import ServerOffer, name_of
from fairlead_cli.chat.screen.picker import FindItems, PickerItem
from fairlead_cli.chat.session_items import list_sessions
from fairlead_cli.chat.session_link import SessionLink
from fairlead_cli.chat.view.command_line import SlashCommand, help_lines
from fairlead_cli.chat.view.status_line import money, usage
from fairlead_cli.errors import CommandError
from fairlead_client import ClientError, Refused
from fairlead_client.errors import ServerAway
from fairlead_schema.ids import SessionId

FAILURES: Final = (CommandError, Refused, ClientError, ValidationError)
"""Why something that a person asked for may fail."""
OTHER_RELEASE: Final = (
    "The server's answer cannot be read: it is of another release. Compare `fairlead --version`."
)
SERVER_AWAY: Final = "The server does not answer. Try again when it is back: the last line says so."
KEYS: Final = (
    ("Enter", "send; while the model works it reads it at its next step"),
    ("Tab", "send for later: it waits until the work is done"),
    ("Ctrl-J", "new line (also Shift-Enter, Alt-Enter, or \\ at the end)"),
    ("Esc", "interrupt the work"),
    ("Ctrl-C twice", "leave; the session goes on"),
    ("Ctrl-Z", "suspend; `fg` in the shell returns"),
    ("Up, Down", "earlier prompts"),
    ("PgUp, PgDn", "scroll"),
    ("Tab (empty)", "choose cards: arrows, Enter unfolds, o opens a sub-agent, Esc returns"),
    ("Ctrl-O", "unfold all cards"),
    ("Ctrl-V", "attach the image in the clipboard"),
)


class ChatHost(Protocol):
    """What a command needs of the application."""

    link: SessionLink
    offer: ServerOffer

    def say(self, text: str) -> None:
        """Show one sentence."""

    def attach(self, path: str) -> None:
        """Attach a file to the next prompt."""

    async def drop(self) -> None:
        """Withdraw what waits."""

    async def pick(
        self, title: str, items: Sequence[PickerItem], find: FindItems | None = None
    ) -> str | None:
        """Let a person choose. `find` finds more for what they type."""

    def open_session(self, session_id: SessionId | None) -> None:
        """Show a session, or begin one."""

    def leave(self) -> None:
        """End the application."""


def failure_text(error: Exception) -> str:
    """A failure as a person reads it."""
    match error:
        case ValidationError():
            return OTHER_RELEASE
        case ServerAway():
            return SERVER_AWAY
        case _:
            return str(error)


async def run_command(host: ChatHost, line: SlashCommand) -> None:
    """Run one command. Raises CommandError, Refused and ClientError."""
    await _RUNNERS[line.name](host, line.argument)


async def _model(host: ChatHost, argument: str) -> None:
    models = {name_of(model): model for model in host.offer.models}
    items = [
        PickerItem(name, name, f"{model['limit']['context'] // 1000}k")
        for name, model in models.items()
    ]
    name = argument or await host.pick("Model from here on", items)
    if name is None:
        return
    if name not in models:
        raise CommandError(f"There is no model {name}. There are: {', '.join(models)}")
    await host.link.fairlead.switch_model(await host.link.ensure_session(), name)


async def _agent(host: ChatHost, argument: str) -> None:
    agents = {agent["id"]: agent.get("description") or "" for agent in host.offer.agents}
    items = [PickerItem(id_, id_, about) for id_, about in agents.items()]
    name = argument or await host.pick("Agent from here on", items)
    if name is None:
        return
    if name not in agents:
        raise CommandError(f"There is no agent {name}. There are: {', '.join(agents)}")
    await host.link.fairlead.switch_agent(await host.link.ensure_session(), name)


async def _compact(host: ChatHost, _argument: str) -> None:
    await host.link.fairlead.compact(_session(host))


async def _undo(host: ChatHost, _argument: str) -> None:
    session_id, fairlead = _session(host), host.link.fairlead
    staged = (await fairlead.get(session_id)).revert
    messages = await fairlead.active_messages(session_id)
    boundary = undo_boundary(messages, staged)
    if boundary is None:
        raise CommandError("There is nothing to undo.")
    state = await fairlead.stage_revert(session_id, boundary.message_id, before=boundary.before)
    files = ", ".join(file.path for file in state.files or ())
    changed = f" Changed back: {files}." if files else ""
    host.say(f"Undone.{changed} /redo brings it back; the next prompt makes it final.")


async def _redo(host: ChatHost, _argument: str) -> None:
    session_id, fairlead = _session(host), host.link.fairlead
    staged = (await fairlead.get(session_id)).revert
    if staged is None:
        raise CommandError("There is nothing to redo.")
    boundary = redo_boundary(await fairlead.active_messages(session_id), staged)
    if boundary is None:
        await fairlead.clear_revert(session_id)
        host.say("Everything is back.")
    else:
        await fairlead.stage_revert(session_id, boundary.message_id, before=boundary.before)
        host.say("One prompt is back. /redo brings back more.")


async def _resume(host: ChatHost, _argument: str) -> None:
    await host.link.fairlead.resume(_session(host))


async def _sessions(host: ChatHost, argument: str) -> None:
    fairlead = host.link.fairlead
    found = await list_sessions(fairlead, search=argument)
    if not found:
        raise CommandError("There is no such session." if argument else "There is no session yet.")
    chosen = await host.pick("Sessions", found, lambda text: list_sessions(fairlead, search=text))
    if chosen is not None:
        host.open_session(chosen)


async def _new(host: ChatHost, _argument: str) -> None:
    host.open_session(None)


async def _rename(host: ChatHost, argument: str) -> None:
    if not argument:
        raise CommandError("Say the title: /rename TITLE")
    await host.link.fairlead.rename(_session(host), argument)


async def _unarchive(host: ChatHost, _argument: str) -> None:
    await host.link.fairlead.request("POST", f"/api/session/{_session(host)}/unarchive")


async def _explain(host: ChatHost, _argument: str) -> None:
    explanation = await host.link.fairlead.explain(_session(host))
    then = f" Next: {explanation['next']}." if explanation.get("next") else ""
    host.say(f"{explanation['reason']}{then}")


async def _export(host: ChatHost, argument: str) -> None:
    session_id = _session(host)
    path, size = _export_path(argument or f"{session_id}.fairlead.jsonl"), 0
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("wb") as file:
            async for piece in host.link.fairlead.export(session_id, tree=True):
                size += file.write(piece)
        part.replace(path)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)
    host.say(f"Exported to {path} ({size} bytes). `fairlead verify` checks it.")


async def _cost(host: ChatHost, _argument: str) -> None:
    info = await host.link.fairlead.get(_session(host))
    children = info.children
    below = f", sub-agents {money(children.cost)}" if children else ""
    host.say(f"This session cost {money(info.cost)}{below}.")
    for used in info.models or ():
        tokens = used.tokens
        name = f"{used.model.provider_id}/{used.model.id}"
        host.say(
            f"{name}: {money(used.cost)} for {used.requests} requests, {tokens.input} tokens in,"
            f" {tokens.output} out, {tokens.cache.read} from the cache"
        )
    window = host.offer.windows.get(host.link.view.model, 0)
    in_use = usage(host.link.view.tokens, window)
    if in_use:
        host.say(f"The last request used {in_use} of the window.")


async def _attach(host: ChatHost, argument: str) -> None:
    if not argument:
        raise CommandError(
            "Name a file of this machine: /attach FILE. A file of the session is @FILE."
        )
    host.attach(argument)


async def _drop(host: ChatHost, _argument: str) -> None:
    await host.drop()


async def _help(host: ChatHost, _argument: str) -> None:
    rows = [*help_lines(), *KEYS]
    await host.pick("Commands and keys", [PickerItem(name, name, about) for name, about in rows])


async def _quit(host: ChatHost, _argument: str) -> None:
    host.leave()


def _export_path(name: str) -> Path:
    return Path(name).expanduser().absolute()


def _session(host: ChatHost) -> SessionId:
    session_id = host.link.view.session_id
    if not session_id:
        raise CommandError(
            "There is no session yet: say something first, or pick one with /sessions."
        )
    return session_id


_RUNNERS: Final[Mapping[str, Callable[[ChatHost, str], Awaitable[None]]]] = {
    "model": _model,
    "agent": _agent,
    "compact": _compact,
    "undo": _undo,
    "redo": _redo,
    "resume": _resume,
    "sessions": _sessions,
    "new": _new,
    "rename": _rename,
    "unarchive": _unarchive,
    "explain": _explain,
    "export": _export,
    "cost": _cost,
    "attach": _attach,
    "drop": _drop,
    "help": _help,
    "quit": _quit,
}
