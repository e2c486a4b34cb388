"""The agent that editors talk to: the methods of the protocol, and what each answers."""

import logging
from typing import TYPE_CHECKING, Any

from acp import PROTOCOL_VERSION, RequestError, schema
from acp.interfaces import Client

from fairlead_cli.acp.translation.prompt_blocks import INVALID_PARAMS, PromptBlock
from fairlead_cli.acp.translation.session_options import MODEL_OPTION
from fairlead_client.local_stack import Gateway

if TYPE_CHECKING:
    from fairlead_cli.acp.editor_sessions import EditorSessions

log = logging.getLogger(__name__)


class FairleadAgent:
    """Serves one editor. Its file and terminal methods stay unused: tools run under Fairlead's policy.

    The router of the protocol's package finds the methods by their names.
    """

    def __init__(self, gateway: Gateway, version: str) -> None:
        self._gateway = gateway
        self._version = version
        self._editor: Client | None = None
        self._has_forms = False
        self._loaded: EditorSessions | None = None

    def on_connect(self, conn: Client) -> None:
        self._editor = conn

    async def aclose(self) -> None:
        """Leave every session. They go on."""
        if self._loaded is not None:
            await self._loaded.aclose()

    @property
    def _sessions(self) -> "EditorSessions":
        """The client of the gateway is loaded with the first session, after the greeting."""
        if self._loaded is None:
            from fairlead_cli.acp.editor_sessions import EditorSessions  # noqa: PLC0415

            assert self._editor is not None, "an editor is connected before it calls"
            self._loaded = EditorSessions(self._gateway, self._editor, has_forms=self._has_forms)
        return self._loaded

    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: schema.ClientCapabilities | None = None,
        client_info: schema.Implementation | None = None,
        **_more: Any,  # noqa: ANN401 - fields of later versions
    ) -> schema.InitializeResponse:
        """Answer with the version that is spoken here. An editor that does not speak it leaves."""
        del protocol_version, client_info
        asking = client_capabilities and client_capabilities.elicitation
        self._has_forms = bool(asking and asking.form is not None)
        return schema.InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
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
        reason = (
            "Nothing to sign in to: the key comes from --token, $FAIRLEAD_TOKEN or the local stack"
        )
        raise RequestError(INVALID_PARAMS, reason, {"methodId": method_id})

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
        session = await self._sessions.create(cwd)
        options = session.translator.options
        return schema.NewSessionResponse(
            session_id=session.id, modes=options.modes(), config_options=[*options.config_options()]
        )

    async def load_session(
        self,
        cwd: str,
        session_id: str,
        **_more: Any,  # noqa: ANN401
    ) -> schema.LoadSessionResponse | None:
        """Show the session from its beginning, and go on with it. It keeps its own location."""
        del cwd
        session = await self._sessions.reopen(session_id, shown=True)
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
        session = await self._sessions.reopen(session_id, shown=False)
        options = session.translator.options
        return schema.ResumeSessionResponse(
            modes=options.modes(), config_options=[*options.config_options()]
        )

    async def close_session(
        self,
        session_id: str,
        **_more: Any,  # noqa: ANN401
    ) -> schema.CloseSessionResponse | None:
        await self._sessions.close(session_id)
        return schema.CloseSessionResponse()

    async def list_sessions(
        self,
        cwd: str | None = None,
        cursor: str | None = None,
        **_more: Any,  # noqa: ANN401
    ) -> schema.ListSessionsResponse:
        return await self._sessions.list_page(cwd, cursor)

    async def set_session_mode(
        self,
        session_id: str,
        mode_id: str,
        **_more: Any,  # noqa: ANN401
    ) -> schema.SetSessionModeResponse | None:
        await self._sessions.switch_agent(session_id, mode_id)
        return schema.SetSessionModeResponse()

    async def set_config_option(
        self,
        config_id: str,
        session_id: str,
        value: str | bool,  # noqa: FBT001 - the signature of the protocol
        **_more: Any,  # noqa: ANN401
    ) -> schema.SetSessionConfigOptionResponse | None:
        options = self._sessions.find(session_id).translator.options
        names = [item.value for one in options.config_options() for item in _values(one)]
        if config_id != MODEL_OPTION or value not in names:
            reason = (
                f"{config_id} has no {value}: choose {MODEL_OPTION} and one of {', '.join(names)}"
            )
            raise RequestError(INVALID_PARAMS, reason, {config_id: value, "expected": names})
        await self._sessions.switch_model(session_id, str(value))
        return schema.SetSessionConfigOptionResponse(config_options=[*options.config_options()])

    async def prompt(
        self,
        session_id: str,
        prompt: list[PromptBlock],
        **_more: Any,  # noqa: ANN401
    ) -> schema.PromptResponse:
        """Admit a prompt. One that comes while the session works steers it."""
        return await self._sessions.prompt(session_id, prompt)

    async def cancel(
        self,
        session_id: str,
        **_more: Any,  # noqa: ANN401
    ) -> None:
        """Stop the work. Nobody gets an answer to a notification, so a failure goes to the log."""
        try:
            await self._sessions.cancel(session_id)
        except RequestError as refusal:
            log.warning("the cancel of an editor had no effect: %s", refusal)


def _values(option: schema.SessionConfigOptionSelect) -> list[schema.SessionConfigSelectOption]:
    return [item for item in option.options if isinstance(item, schema.SessionConfigSelectOption)]
