# Generated from async_client/workspace.py by `make client`: change that file.
"""What people's programs need besides prompts: models, agents, files, own commands, and undo."""

from typing import Any

from fairlead_client.answers.answer_models import data_of, list_of, read_as, read_each
from fairlead_client.message_ids import mint_message_id
from fairlead_client.prompt_input import AnySession, session_id_of
from fairlead_client.sync_client.session_admin import SessionAdmin
from fairlead_schema.ids import MessageId
from fairlead_schema.session_info import SessionInfo
from fairlead_schema.session_values.revert_state import RevertState


class Workspace(SessionAdmin):
    """Reads what a server offers for a directory, and changes what a person sees there."""

    def models(self) -> list[dict[str, Any]]:
        """The configured models, newest first, in the form of the API."""
        return list_of(self._transport.request("GET", "/api/model"))

    def agents(self) -> list[dict[str, Any]]:
        """The configured agents, in the form of the API."""
        return list_of(self._transport.request("GET", "/api/agent"))

    def commands(self, *, directory: str | None = None) -> list[dict[str, Any]]:
        """The commands that a prompt may begin with, in the form of the API."""
        params = _place(directory)
        return list_of(self._transport.request("GET", "/api/command", params=params))

    def find_files(self, query: str, *, directory: str | None = None, limit: int = 20) -> list[str]:
        """Paths of files and directories that fit a query, best first."""
        params = {"query": query, "limit": limit, **_place(directory)}
        page = self._transport.request("GET", "/api/fs/find", params=params)
        return [entry["path"] for entry in list_of(page)]

    def list_files(self, path: str = ".", *, directory: str | None = None) -> list[dict[str, Any]]:
        """The entries of a directory of a location: `path` and `type`."""
        params = {"path": path, **_place(directory)}
        return list_of(self._transport.request("GET", "/api/fs/list", params=params))

    def upload(
        self, session: AnySession, content: bytes, *, name: str | None = None
    ) -> dict[str, Any]:
        """Store a file for a later prompt, which attaches it by `uri`. It may be repeated."""
        path = f"/api/session/{session_id_of(session)}/upload"
        params = {} if name is None else {"name": name}
        answer = self._transport.request("POST", path, params=params, content=content)
        file: dict[str, Any] = data_of(answer)
        return file

    def shell(
        self,
        session: AnySession,
        command: str,
        *,
        id: MessageId | None = None,  # noqa: A002 - the name on the wire
    ) -> MessageId:
        """Run a person's own command in the location, once. The model reads what came of it."""
        message_id = id or mint_message_id()
        self._send("session.shell", session, id=message_id, command=command)
        return message_id

    def active_messages(self, session: AnySession) -> list[dict[str, Any]]:
        """The messages since the last compaction, oldest first, in the form of the API."""
        path = f"/api/session/{session_id_of(session)}/context"
        return list_of(self._transport.request("GET", path))

    def stage_revert(
        self,
        session: AnySession,
        message_id: MessageId,
        *,
        files: bool = True,
        before: bool = False,
    ) -> RevertState:
        """Go back to a message, and change files back. The next prompt makes it final.

        With `before` that message leaves too.
        """
        fields = {"before": True} if before else {}
        state = self._send("revert.stage", session, messageID=message_id, files=files, **fields)
        return read_as(RevertState, state)

    def clear_revert(self, session: AnySession) -> None:
        """Undo the staged revert."""
        self._send("revert.clear", session)

    def rename(self, session: AnySession, title: str) -> None:
        """Give a session a title that no model changes."""
        self._send("session.describe", session, title=title)

    def children(self, session: AnySession) -> list[SessionInfo]:
        """The sessions of the sub-agents of a session."""
        path = f"/api/session/{session_id_of(session)}/children"
        page = self._transport.request("GET", path)
        return read_each(SessionInfo, data_of(page))


def _place(directory: str | None) -> dict[str, Any]:
    return {} if directory is None else {"location[directory]": directory}
