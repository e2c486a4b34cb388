"""The agent that editors talk to: each method of the protocol as a few calls of the Python client."""

import logging
from typing import Any, Final

from acp import PROTOCOL_VERSION, RequestError, schema
from acp.interfaces import Client

from fairlead_cli.acp.open_session import OpenSession
from fairlead_cli.acp.protocol_errors import NOT_FOUND, protocol_errors
from fairlead_cli.acp.translation.prompt_blocks import PromptBlock, join_blocks
from fairlead_cli.acp.translation.session_options import MODEL_OPTION, SessionOptions
from fairlead_cli.acp.translation.updates import UpdateTranslator, model_name
from fairlead_client import AsyncFairlead
from fairlead_schema.session_info import SessionInfo

log = logging.getLogger(__name__)

PAGE: Final = 50


class FairleadAgent:
    """Serves one editor. Its file and terminal methods stay unused: tools run under Fairlead's policy.

    The router of the protocol's package finds the methods by their names.
    """

    def __init__(self, fairlead: AsyncFairlead, version: str) -> None:
        self._fairlead = fairlead
        self._version = version
        self._editor: Client | None = None
        self._open: dict[str, OpenSession] = {}

    def on_connect(self, conn: Client) -> None:
        self._editor = conn

    async def aclose(self) -> None:
        """Leave every session. They go on."""
        for session in self._open.values():
            await session.close()

    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: schema.ClientCapabilities | None = None,
        client_info: schema.Implementation | None = None,
        **_more: Any,  # noqa: ANN401 - fields of later versions
    ) -> schema.InitializeResponse:
        del client_capabilities, client_info
        return schema.InitializeResponse(
            protocol_version=min(protocol_version, PROTOCOL_VERSION),
            agent_info=schema.Implementation(
                name="fairlead", title="Fairlead", version=self._version
            ),
            agent_capabilities=schema.AgentCapabilities(
                load_session=True,
                prompt_capabilities=schema.PromptCapabilities(
                    image=True, audio=True, embedded_context=True
                ),
                session_capabilities=schema.SessionCapabilities(
                    list=schema.SessionListCapabilities(),
                    resume=schema.SessionResumeCapabilities(),
                    close=schema.SessionCloseCapabilities(),
                ),
            ),
            auth_methods=[],
        )

    async def authenticate(
        self,
        method_id: str,
        **_more: Any,  # noqa: ANN401
    ) -> schema.AuthenticateResponse | None:
        reason = "the key comes from --token, $FAIRLEAD_TOKEN or the local stack"
        raise RequestError.invalid_params({"methodId": method_id, "reason": reason})

    async def new_session(
        self,
        cwd: str,
        mcp_servers: list[Any] | None = None,
        **_more: Any,  # noqa: ANN401
    ) -> schema.NewSessionResponse:
        """A session at the editor's directory. MCP servers come from Fairlead's own configuration."""
        if mcp_servers:
            log.warning(
                "MCP servers of the editor are not used: name them in fairlead.toml",
                extra={"servers": len(mcp_servers)},
            )
        with protocol_errors():
            info = await self._fairlead.create(directory=cwd)
            session = await self._enter(info, shown=False)
        options = session.translator.options
        return schema.NewSessionResponse(
            session_id=info.id, modes=options.modes(), config_options=[*options.config_options()]
        )

    async def load_session(
        self,
        cwd: str,
        session_id: str,
        **_more: Any,  # noqa: ANN401
    ) -> schema.LoadSessionResponse | None:
        """Show the session from its beginning, and go on with it. It keeps its own location."""
        del cwd
        session = await self._reopen(session_id, shown=True)
        options = session.translator.options
        return schema.LoadSessionResponse(
            modes=options.modes(), config_options=[*options.config_options()]
        )

    async def resume_session(
        self,
        session_id: str,
        cwd: str,
        **_more: Any,  # noqa: ANN401
    ) -> schema.ResumeSessionResponse:
        """Go on with a session that the editor shows already."""
        del cwd
        session = await self._reopen(session_id, shown=False)
        options = session.translator.options
        return schema.ResumeSessionResponse(
            modes=options.modes(), config_options=[*options.config_options()]
        )

    async def close_session(
        self,
        session_id: str,
        **_more: Any,  # noqa: ANN401
    ) -> schema.CloseSessionResponse | None:
        await self._find(session_id).close()
        del self._open[session_id]
        return schema.CloseSessionResponse()

    async def list_sessions(
        self,
        cwd: str | None = None,
        cursor: str | None = None,
        **_more: Any,  # noqa: ANN401
    ) -> schema.ListSessionsResponse:
        params: dict[str, Any] = {"cursor": cursor} if cursor else {"limit": PAGE}
        if cwd and not cursor:
            params["directory"] = cwd
        with protocol_errors():
            page = await self._fairlead.request("GET", "/api/session", params=params)
        return schema.ListSessionsResponse(
            sessions=[_describe_session(SessionInfo.model_validate(item)) for item in page["data"]],
            next_cursor=(page.get("cursor") or {}).get("next"),
        )

    async def set_session_mode(
        self,
        session_id: str,
        mode_id: str,
        **_more: Any,  # noqa: ANN401
    ) -> schema.SetSessionModeResponse | None:
        self._find(session_id)
        with protocol_errors():
            await self._fairlead.switch_agent(session_id, mode_id)
        return schema.SetSessionModeResponse()

    async def set_config_option(
        self,
        config_id: str,
        session_id: str,
        value: str | bool,  # noqa: FBT001 - the signature of the protocol
        **_more: Any,  # noqa: ANN401
    ) -> schema.SetSessionConfigOptionResponse | None:
        options = self._find(session_id).translator.options
        names = [item.value for one in options.config_options() for item in _values(one)]
        if config_id != MODEL_OPTION or value not in names:
            raise RequestError.invalid_params({config_id: value, "expected": names})
        with protocol_errors():
            await self._fairlead.switch_model(session_id, str(value))
        options.model = str(value)
        return schema.SetSessionConfigOptionResponse(config_options=[*options.config_options()])

    async def prompt(
        self,
        session_id: str,
        prompt: list[PromptBlock],
        **_more: Any,  # noqa: ANN401
    ) -> schema.PromptResponse:
        """Admit a prompt. One that comes while the session works steers it."""
        session, joined = self._find(session_id), join_blocks(prompt)
        with protocol_errors():
            return await session.prompt(joined)

    async def cancel(
        self,
        session_id: str,
        **_more: Any,  # noqa: ANN401
    ) -> None:
        with protocol_errors():
            await self._find(session_id).cancel()

    async def _reopen(self, session_id: str, *, shown: bool) -> OpenSession:
        with protocol_errors():
            info = await self._fairlead.get(session_id)
            before = self._open.pop(session_id, None)
            if before is not None:
                await before.close()
            return await self._enter(info, shown=shown)

    async def _enter(self, info: SessionInfo, *, shown: bool) -> OpenSession:
        assert self._editor is not None, "an editor is connected before it calls"
        options = await self._load_options(info)
        translator = UpdateTranslator(info.location.directory, options)
        session = OpenSession(self._fairlead, self._editor, info.id, translator)
        await session.replay(shown=shown)
        self._open[info.id] = session
        session.follow()
        return session

    async def _load_options(self, info: SessionInfo) -> SessionOptions:
        agents = (await self._fairlead.request("GET", "/api/agent"))["data"]
        models = (await self._fairlead.request("GET", "/api/model"))["data"]
        return SessionOptions(
            agents=agents,
            models=models,
            agent=info.agent or "",
            model="" if info.model is None else model_name(info.model.wire()),
        )

    def _find(self, session_id: str) -> OpenSession:
        session = self._open.get(session_id)
        if session is None:
            text = f"No open session {session_id}: create, load or resume it first"
            raise RequestError(NOT_FOUND, text, {"sessionId": session_id})
        return session


def _describe_session(info: SessionInfo) -> schema.SessionInfo:
    return schema.SessionInfo(
        session_id=info.id,
        cwd=info.location.directory,
        title=info.title,
    )


def _values(option: schema.SessionConfigOptionSelect) -> list[schema.SessionConfigSelectOption]:
    return [item for item in option.options if isinstance(item, schema.SessionConfigSelectOption)]
