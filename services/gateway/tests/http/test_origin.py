"""Web pages of other origins reach nothing, with and without tokens (FINDINGS B1)."""

import httpx
import pytest

from fairlead_gateway.http.operation import AnyOperation
from fairlead_gateway.http.origin_rules import OriginRules, browser_headers, complaint
from fairlead_gateway.routes import OPERATIONS
from fairlead_gateway.settings import GatewaySettings
from fairlead_service.config.configuration import Config
from services.gateway.tests.conftest import FakeIngest
from services.gateway.tests.http.sample_requests import sample_request

OWN = "http://127.0.0.1"
FOREIGN = [
    {"origin": "https://evil.example"},
    {"origin": "http://127.0.0.1:3000"},
    {"origin": "http://localhost"},
    {"origin": "null"},
    {"origin": ""},
    {"origin": f"{OWN}, https://evil.example"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
    {"sec-fetch-site": "new-kind"},
    {"origin": OWN, "sec-fetch-site": "cross-site"},
    {"host": "evil.example"},
    {"host": "evil.example:8420"},
    {"host": "127.0.0.1.evil.example"},
    {"host": "localhost@evil.example"},
    {"host": "127.0.0.1:evil.example"},
    {"host": "[::1].evil.example"},
    {"host": ""},
    {"host": "evil.example", "origin": "http://evil.example", "sec-fetch-site": "same-origin"},
]
FRIENDLY = [
    {},
    {"origin": OWN},
    {"origin": OWN, "sec-fetch-site": "same-origin"},
    {"sec-fetch-site": "none"},
    {"host": "localhost:8420", "origin": "http://localhost:8420"},
    {"host": "[::1]:8420"},
    {"host": "127.0.0.1:8420"},
]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
@pytest.mark.parametrize(
    "headers", [{"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}], ids=str
)
async def test_a_foreign_page_is_refused_on_every_route(
    client: httpx.AsyncClient, ingest: FakeIngest, operation: AnyOperation, headers: dict[str, str]
) -> None:
    """B1: streams and routes without a body included."""
    answer = await sample_request(operation).send(client, **headers)

    assert (answer.status_code, answer.json()["_tag"]) == (403, "ForbiddenError")
    assert "access-control-allow-origin" not in answer.headers
    assert ingest.commands == []


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
@pytest.mark.parametrize("path", ["/api/health", "/openapi.json", "/nope"])
async def test_headers_of_foreign_pages_are_refused(
    client: httpx.AsyncClient, headers: dict[str, str], path: str
) -> None:
    """B1: a rebound name (Host) is refused as a foreign page is."""
    assert (await client.get(path, headers=headers)).status_code == 403


@pytest.mark.parametrize("headers", FRIENDLY, ids=str)
async def test_own_pages_and_programs_pass(
    client: httpx.AsyncClient, headers: dict[str, str]
) -> None:
    assert (await client.get("/api/health", headers=headers)).status_code == 200


def test_two_hosts_or_two_origins_are_refused() -> None:
    twice = [(b"host", b"127.0.0.1"), (b"host", b"evil.example")]
    origins = [
        (b"host", b"127.0.0.1"),
        (b"origin", b"http://127.0.0.1"),
        (b"origin", b"http://evil.example"),
    ]

    assert complaint(OriginRules(), browser_headers(twice)) is not None
    assert complaint(OriginRules(), browser_headers(origins)) is not None
    assert complaint(OriginRules(), browser_headers([])) is not None


@pytest.mark.parametrize("path", ["/api/session/ses_1/interrupt", "/api/session"])
@pytest.mark.parametrize(
    "headers",
    [
        {"origin": OWN},
        {"sec-fetch-site": "same-origin"},
        {"sec-fetch-mode": "no-cors"},
        {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": "multipart/form-data; boundary=x"},
    ],
    ids=str,
)
async def test_a_form_cannot_command(
    client: httpx.AsyncClient, ingest: FakeIngest, path: str, headers: dict[str, str]
) -> None:
    """B1: a browser must say that it sends JSON, also where no body is expected."""
    answer = await client.post(path, content=b"", headers=headers)

    assert answer.status_code == 415
    assert ingest.commands == []


async def test_the_fetch_of_node_needs_no_content_type_without_a_body(
    client: httpx.AsyncClient, ingest: FakeIngest
) -> None:
    """The published client sends no body and no content type to `interrupt`, `wait` and `compact`."""
    ingest.serve("session.compact", {"data": {"sessionID": "ses_1", "seq": 3}})

    answer = await client.post("/api/session/ses_1/compact", headers={"sec-fetch-mode": "cors"})

    assert answer.status_code == 204


async def test_without_cors_nothing_may_be_read_and_preflights_fail(
    client: httpx.AsyncClient,
) -> None:
    headers = {"origin": "https://evil.example", "access-control-request-method": "POST"}

    answer = await client.options("/api/session", headers=headers)

    assert answer.status_code == 403
    assert not [name for name in answer.headers if name.startswith("access-control")]


class TestWithConfiguredNames:
    """`gateway.hosts` and `gateway.origins` are set."""

    @pytest.fixture
    def settings(self) -> GatewaySettings:
        gateway = {"hosts": "Agents.example, 10.0.0.7:8420", "origins": ["https://console.example"]}
        config = {"gateway": gateway, "auth": {"mode": "open"}}
        return GatewaySettings.of(Config.model_validate(config))

    @pytest.mark.parametrize(
        ("host", "status"),
        [
            ("agents.example", 200),
            ("AGENTS.example:443", 200),
            ("10.0.0.7:8420", 200),
            ("10.0.0.7", 403),
            ("other.example", 403),
        ],
    )
    async def test_configured_hosts_pass(
        self, client: httpx.AsyncClient, host: str, status: int
    ) -> None:
        assert (await client.get("/api/health", headers={"host": host})).status_code == status

    async def test_a_configured_origin_may_call_and_read_without_credentials(
        self, client: httpx.AsyncClient
    ) -> None:
        headers = {"origin": "https://console.example", "sec-fetch-site": "cross-site"}

        answer = await client.get("/api/health", headers=headers)
        preflight = await client.options(
            "/api/session", headers={**headers, "access-control-request-method": "POST"}
        )

        assert answer.status_code == 200
        assert answer.headers["access-control-allow-origin"] == "https://console.example"
        assert "fairlead-log" in answer.headers["access-control-expose-headers"]
        assert "access-control-allow-credentials" not in answer.headers
        assert preflight.status_code == 204
        assert "authorization" in preflight.headers["access-control-allow-headers"]

    async def test_other_origins_stay_out(self, client: httpx.AsyncClient) -> None:
        answer = await client.get("/api/health", headers={"origin": "https://console.example.evil"})

        assert answer.status_code == 403


@pytest.mark.parametrize("origin", ["*", "console.example", "https://a.example/path", "null"])
def test_only_exact_origins_may_be_configured(origin: str) -> None:
    with pytest.raises(ValueError, match="is not like https"):
        Config.model_validate({"gateway": {"origins": [origin]}})
