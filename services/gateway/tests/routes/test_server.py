"""Health, location, agents, models and metrics: routes that need no other server."""

import httpx
import pytest
from prometheus_client import REGISTRY

from fairlead_gateway.routes.server.catalog import shown_url
from fairlead_gateway.settings import GatewaySettings
from fairlead_service.config.configuration import Config

CONFIG = {
    "default_model": "acme/fast",
    "provider": {
        "acme": {
            "protocol": "anthropic-messages",
            "base_url": "http://127.0.0.1:9000",
            "headers": {"x-secret": "hidden"},
            "model": {
                "fast": {
                    "id": "fast-1",
                    "context": 1000,
                    "output": 100,
                    "cost": {
                        "input": 3,
                        "output": 15,
                        "cache_read": 0.3,
                        "cache_write": 3.75,
                        "tier": [{"context": 200_000, "input": 6, "output": 22.5}],
                    },
                },
                "newest": {
                    "name": "Newest",
                    "family": "fast",
                    "released": "2026-03-01",
                    "capabilities": {"input": ["text", "image"]},
                    "headers": {"x-beta": "hidden"},
                    "options": {"thinking": {"type": "adaptive"}},
                    "default_variant": "high",
                    "variant": {"high": {"body": {"effort": "high"}, "headers": {"x-v": "hidden"}}},
                },
                "older": {"released": "2025-03-01"},
            },
        }
    },
    "agent": {"build": {"system": "Be careful.", "steps": 5}, "helper": {"hidden": True}},
    "location": {"default": "/srv/default"},
}


@pytest.fixture
def settings() -> GatewaySettings:
    return GatewaySettings.of(Config.model_validate(CONFIG))


class TestWithALocationOfTheTenant:
    """The tenant has a default location of its own."""

    @pytest.fixture
    def settings(self) -> GatewaySettings:
        own = {"tenant": {"default": {"location": {"default": "/srv/own"}}}}
        return GatewaySettings.of(Config.model_validate(CONFIG | own))

    async def test_a_caller_sees_the_default_of_its_tenant(self, client: httpx.AsyncClient) -> None:
        assert (await client.get("/api/location")).json()["directory"] == "/srv/own"


async def test_health_answers(client: httpx.AsyncClient) -> None:
    assert (await client.get("/api/health")).json() == {"healthy": True}


@pytest.mark.parametrize("path", ["/metrics", "/readyz", "/healthz", "/asyncapi.json"])
async def test_the_public_port_does_not_serve_operators(
    client: httpx.AsyncClient, path: str
) -> None:
    """B14: metrics and readiness have a port of their own."""
    assert (await client.get(path)).status_code == 404


async def test_the_location_comes_from_the_query_then_the_headers_then_the_server(
    client: httpx.AsyncClient,
) -> None:
    headers = {"x-opencode-directory": "/by%20header", "x-opencode-workspace": "wrk_1"}

    default = await client.get("/api/location")
    by_header = await client.get("/api/location", headers=headers)
    by_query = await client.get("/api/location?location[directory]=/by/query", headers=headers)

    assert default.json()["directory"] == "/srv/default"
    assert default.json()["project"]["directory"] == "/srv/default"
    assert by_header.json()["directory"] == "/by header"
    assert by_header.json()["workspaceID"] == "wrk_1"
    assert by_query.json()["directory"] == "/by/query"


async def test_every_agent_is_listed_hidden_ones_too(client: httpx.AsyncClient) -> None:
    answer = (await client.get("/api/agent")).json()

    agents = [agent["id"] for agent in answer["data"]]
    assert agents == ["build", "plan", "general", "explore", "helper"]
    first_rules = [agent["permissions"][0]["effect"] for agent in answer["data"]]
    assert first_rules == ["allow", "deny", "allow", "deny", "allow"]
    assert answer["data"][0]["system"] == "Be careful."
    assert answer["data"][0]["request"] == {"headers": {}, "body": {}}
    assert "model" not in answer["data"][0]
    assert answer["location"]["directory"] == "/srv/default"


async def test_models_are_listed_without_secrets(client: httpx.AsyncClient) -> None:
    answer = await client.get("/api/model")

    *_, model = answer.json()["data"]
    assert (model["id"], model["providerID"], model["api"]["id"]) == ("fast", "acme", "fast-1")
    assert model["limit"] == {"context": 1000, "output": 100}
    assert "hidden" not in answer.text


async def test_models_are_listed_newest_first(client: httpx.AsyncClient) -> None:
    models = (await client.get("/api/model")).json()["data"]

    assert [model["id"] for model in models] == ["newest", "older", "fast"]
    assert models[0]["time"] == {"released": 1772323200000}
    tier = {"type": "context", "size": 200_000}
    assert models[-1]["cost"] == [
        {"input": 3, "output": 15, "cache": {"read": 0.3, "write": 3.75}},
        {"tier": tier, "input": 6, "output": 22.5, "cache": {"read": 0, "write": 0}},
    ]


async def test_a_model_shows_what_it_can_do_and_its_variants(client: httpx.AsyncClient) -> None:
    """O-31: which variants a session may name, and the one it gets by itself."""
    model = (await client.get("/api/model")).json()["data"][0]

    assert (model["name"], model["family"]) == ("Newest", "fast")
    assert model["capabilities"] == {"tools": True, "input": ["text", "image"], "output": ["text"]}
    assert model["request"] == {
        "headers": {"x-beta": "…"},
        "body": {"thinking": {"type": "adaptive"}},
        "variant": "high",
    }
    assert model["variants"] == [
        {"id": "high", "headers": {"x-v": "…"}, "body": {"effort": "high"}}
    ]


async def test_requests_are_measured_by_route_template_only(client: httpx.AsyncClient) -> None:
    labels = {"method": "GET", "route": "/api/session/{sessionID}", "status": "4xx"}
    name = "fairlead_http_request_seconds_count"
    before = REGISTRY.get_sample_value(name, labels) or 0

    for session_id in ("ses_x", "ses_y"):
        await client.get(f"/api/session/{session_id}")
    await client.get("/no/such/route")

    assert REGISTRY.get_sample_value(name, labels) == before + 2
    assert REGISTRY.get_sample_value(name, labels | {"route": "unmatched"})


async def test_providers_are_shown_without_secrets(client: httpx.AsyncClient) -> None:
    listed = (await client.get("/api/provider")).json()
    one = (await client.get("/api/provider/acme")).json()
    missing = await client.get("/api/provider/nobody")

    assert listed["data"] == [one["data"]]
    assert one["location"]["directory"] == "/srv/default"
    assert one["data"] == {
        "id": "acme",
        "name": "acme",
        "api": {
            "type": "native",
            "url": "http://127.0.0.1:9000",
            "settings": {"protocol": "anthropic-messages"},
        },
        "request": {"headers": {"x-secret": "…"}, "body": {}},
    }
    assert (missing.status_code, missing.json()["_tag"]) == (404, "ProviderNotFoundError")
    assert missing.json()["providerID"] == "nobody"
    assert shown_url("https://user:pass@host:1/v1?x=1") == "https://host:1/v1?x=1"
