"""Sessions show the agent and the model that their next turn uses (D17)."""

import httpx
import pytest

from fairlead_gateway.settings import GatewaySettings
from fairlead_schema.catalog import ModelRef
from fairlead_service.config.configuration import Config
from services.gateway.tests.conftest import Append, Project

CONFIG = Config.model_validate(
    {
        "default_model": "acme/fast",
        "provider": {
            "acme": {
                "protocol": "openai-chat",
                "base_url": "http://acme",
                "model": {"fast": {}, "slow": {}},
            }
        },
        "agent": {"build": {}, "thinker": {"model": "acme/slow"}},
    }
)


@pytest.fixture
def settings() -> GatewaySettings:
    return GatewaySettings(fresh_timeout_s=0.02, with_defaults=CONFIG.with_defaults)


async def test_a_session_without_a_choice_shows_the_defaults(
    client: httpx.AsyncClient, append: Append, project: Project
) -> None:
    """D17: on its own page and in lists; the model of a chosen agent counts."""
    for session_id in ("ses_1", "ses_2", "ses_3"):
        await append(session_id)
    project("ses_1")
    project("ses_2", agent="thinker")
    project("ses_3", agent="gone", model=ModelRef(provider_id="acme", id="slow", variant="high"))

    alone = await client.get("/api/session/ses_1")
    listed = await client.get("/api/session", params={"order": "asc"})

    fast = {"providerID": "acme", "id": "fast", "variant": "default"}
    assert (alone.json()["data"]["agent"], alone.json()["data"]["model"]) == ("build", fast)
    assert [(item["agent"], item["model"]) for item in listed.json()["data"]] == [
        ("build", fast),
        ("thinker", {**fast, "id": "slow"}),
        ("gone", {**fast, "id": "slow", "variant": "high"}),
    ]
