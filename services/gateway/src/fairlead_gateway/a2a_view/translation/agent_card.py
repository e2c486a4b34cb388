"""The card by which other agents find this one. It names no secret and no session. Pure."""

from collections.abc import Mapping

from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    HTTPAuthSecurityScheme,
    SecurityRequirement,
    SecurityScheme,
    StringList,
)

VERSIONS = ("1.0", "0.3")
MODES = ("text/plain", "application/json")
GENERAL = AgentSkill(
    id="session",
    name="Durable session",
    description="Answers prompts in a durable session with tools. It may ask for permissions.",
    tags=["agent", "durable", "tools"],
)


def agent_card(base_url: str, version: str, agents: Mapping[str, str | None] | None) -> AgentCard:
    """The card. With agents it is the one for callers that are known: each agent is a skill."""
    skills = [
        AgentSkill(id=id_, name=id_, description=description or id_, tags=["agent"])
        for id_, description in (agents or {}).items()
    ]
    bearer = HTTPAuthSecurityScheme(scheme="bearer", description="A key or a token of Fairlead.")
    return AgentCard(
        name="Fairlead",
        description="A durable session runtime for AI agents.",
        version=version,
        supported_interfaces=[
            AgentInterface(
                url=f"{base_url}/a2a", protocol_binding="JSONRPC", protocol_version=version_
            )
            for version_ in VERSIONS
        ],
        capabilities=AgentCapabilities(
            streaming=True, push_notifications=False, extended_agent_card=True
        ),
        security_schemes={"bearer": SecurityScheme(http_auth_security_scheme=bearer)},
        security_requirements=[SecurityRequirement(schemes={"bearer": StringList()})],
        default_input_modes=MODES,
        default_output_modes=MODES,
        skills=skills or [GENERAL],
    )
