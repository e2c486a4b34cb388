"""Secrets are planted wherever a stack takes some; then everything that a full run leaves is searched."""

import asyncio
import base64
import json
import shlex
import sys
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

import httpx
import psycopg
import pytest
import pytest_asyncio
from psycopg import sql

from fairlead_cli.embedded.ports import free_port
from fairlead_testing.session_driver import events_of, say, wait_until_settled
from fairlead_testing.stack import TIMEOUT_S, Stack, stack
from fairlead_testing.web_server import Site, reply, site

pytestmark = [
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(240),
]

CANARY = "canary-of-the-search"
# The web server of the tests makes headers lower case, so the secrets are lower case.
SECRETS = {
    name: f"planted/{name}+5f0c77e1b9a24d63"
    for name in ("key", "file", "newfile", "team", "bearer", "tool", "search", "cloud")
}
VARIABLES = {
    "PLANTED_KEY": SECRETS["key"],
    "PLANTED_TOOL_TOKEN": SECRETS["tool"],
    "PLANTED_SEARCH_KEY": SECRETS["search"],
    "AWS_SECRET_ACCESS_KEY": SECRETS["cloud"],
}
CONFIG = """
[runner]
snapshot_events = 2

[[agent.build.permissions]]
action = "*"
resource = "*"
effect = "allow"

[location]
default = {work}

[provider.sim]
protocol = "openai-chat"
base_url = {sim}
api_key_env = "PLANTED_KEY"
[provider.sim.model.fast]

[provider.filed]
protocol = "openai-chat"
base_url = {web}
api_key_file = {key_file}
headers = {{ x-team-token = {team} }}
[provider.filed.model.m]

[provider.named]
protocol = "openai-chat"
base_url = {web}
api_key_env = "PLANTED_KEY"
headers = {{ authorization = {bearer} }}
[provider.named.model.m]

[mcp.leaky]
command = {python}
args = ["-m", "fairlead_testing.tool_server", {calls}]
env_from = {{ SECRET = "PLANTED_TOOL_TOKEN" }}
env = {{ PYTHONPATH = {path} }}

[tools.websearch.acme]
url = {search}
api_key_env = "PLANTED_SEARCH_KEY"
"""


@dataclass
class PlantedStack:
    """A stack with secrets, its files, and the web that repeats secrets."""

    up: Stack
    place: Path
    web: Site

    @property
    def key_file(self) -> Path:
        return self.place / "key"

    def sent_headers(self) -> str:
        """The headers of all requests that reached the web."""
        return str([headers for _path, headers, _body in self.web.asked])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def planted_stack() -> AsyncIterator[PlantedStack]:
    with (
        TemporaryDirectory(prefix="fairlead-", ignore_cleanup_errors=True) as directory,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in VARIABLES.items():
            patch.setenv(name, value)
        place = Path(directory)
        async with site() as web:
            repeat_headers(web)
            config = write_config(place, web)
            async with stack(place / "state", config=config, sim=True) as up:
                yield PlantedStack(up, place, web)


def repeat_headers(web: Site) -> None:
    """Let the web refuse every request, with all header values in the reason."""

    def reason() -> str:
        values = [value for value in web.asked[-1][1].values() if "planted" in value]
        return f"refused: {values} {[value.split()[-1] for value in values]}"

    async def refuse(writer: asyncio.StreamWriter) -> None:
        error = {"error": {"message": reason(), "param": reason()}}
        writer.write(reply(json.dumps(error).encode(), status="401 No", mime="application/json"))

    async def refuse_search(writer: asyncio.StreamWriter) -> None:
        error = {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": reason()}}
        writer.write(reply(json.dumps(error).encode(), mime="application/json"))

    web.pages |= {"/v1/chat/completions": refuse, "/search": refuse_search}


def write_config(place: Path, web: Site) -> Path:
    place.chmod(0o755)
    (place / "work").mkdir()
    (place / "work/notes.txt").write_text(f"{CANARY}\n")
    (place / "key").write_text(f"{SECRETS['file']}\n")
    values = {
        "work": str(place / "work"),
        "sim": f"http://127.0.0.1:{free_port()}",
        "web": web.url("").rstrip("/"),
        "search": web.url("/search"),
        "key_file": str(place / "key"),
        "team": SECRETS["team"],
        "bearer": f"Bearer {SECRETS['bearer']}",
        "python": sys.executable,
        "calls": str(place / "calls"),
        "path": ":".join(path for path in sys.path if path),
    }
    config = place / "fairlead.toml"
    config.write_text(CONFIG.format(**{name: json.dumps(value) for name, value in values.items()}))
    return config


async def test_a_full_run_leaves_no_secret_behind(planted_stack: PlantedStack) -> None:
    """B3, B17, O-32: the keys leave in headers, servers repeat them, and nothing keeps them."""
    up = planted_stack.up
    sessions = [
        await run_tools(up),
        await run_refusals(up, "filed"),
        await run_refusals(up, "named"),
    ]
    sessions.append(await run_interrupted(up))
    purged = await run_tools(up)
    (await up.http.delete(f"/api/session/{purged}", params={"purge": True})).raise_for_status()

    for name in ("file", "team", "bearer", "search"):
        assert SECRETS[name] in planted_stack.sent_headers(), f"{name} was used"
    shown = [text async for text in answers(up, sessions)]
    shown += [text async for text in operations(up)]
    shown.append(await command_output(planted_stack.place, sessions))
    kept = [*stored_files(planted_stack.place / "state"), *dumped_tables(up.up.postgres_admin)]

    assert any(CANARY in text for text in shown)
    assert any("process_cpu_seconds_total" in text for text in shown)
    for source in ("jetstream", "postgres", "projection"):
        assert any(CANARY.encode() in content for name, content in kept if source in name), source
    assert find_secrets([("shown", text.encode()) for text in shown]) == []
    assert find_secrets(kept) == []
    own = own_secrets(planted_stack.place / "state")
    assert {name.split("/")[-2] for name in own} >= {"state", "keys", "passwords"}
    assert find_secrets([("shown", text.encode()) for text in shown], own) == []
    assert [found for found in find_secrets(kept, own) if found[0] != found[1]] == []


async def test_a_changed_key_file_counts_from_the_next_turn(planted_stack: PlantedStack) -> None:
    """Item 9 of issue 12: nobody restarts a service to change a key."""
    up = planted_stack.up
    session = await run_refusals(up, "filed")
    assert SECRETS["file"] in str(planted_stack.web.asked[-1])

    planted_stack.key_file.write_text(f"{SECRETS['newfile']}\n")
    await say(up, session, "again")
    await up.until(session, "step.failed", count=2)
    await wait_until_settled(up, session)

    assert f"bearer {SECRETS['newfile']}" in str(planted_stack.web.asked[-1])
    assert find_secrets(stored_files(planted_stack.place / "state")) == []


async def run_tools(up: Stack) -> str:
    """A session whose tools look for secrets, or get them in the errors of their servers."""
    session = await up.session()
    calls: tuple[tuple[str, dict[str, str]], ...] = (
        ("bash", {"command": "env; cat /proc/[0-9]*/environ | tr '\\0' '\\n'; cat notes.txt"}),
        ("read", {"path": "notes.txt"}),
        ("leaky_refuse", {}),
        ("leaky_environment", {}),
        ("websearch", {"query": "tides"}),
    )
    for tool, arguments in calls:
        args = shlex.quote(json.dumps(arguments))
        await say(up, session, f"[[sim: tool={tool} args={args} ; answer=done]] {CANARY}")
        await wait_until_settled(up, session)
    log = await up.events(session)
    settled = [*events_of(log, "tool.succeeded"), *events_of(log, "tool.failed")]
    assert len(settled) == len(calls)
    return session


async def run_refusals(up: Stack, provider: str) -> str:
    """A session whose provider refuses the key and repeats it."""
    session = await up.session(model={"providerID": provider, "id": "m"})
    await say(up, session, CANARY)
    await up.until(session, "step.failed")
    await wait_until_settled(up, session)
    return session


async def run_interrupted(up: Stack) -> str:
    session = await up.session()
    await say(up, session, f"[[sim: chunks=2000 delay_ms=20]] {CANARY}")
    await up.until(session, "attempt.dispatched")
    (await up.http.post(f"/api/session/{session}/interrupt")).raise_for_status()
    await wait_until_settled(up, session)
    return session


async def answers(up: Stack, sessions: Iterable[str]) -> AsyncIterator[str]:
    """What the HTTP API says about the sessions and the configuration."""
    for session in sessions:
        for what in ("", "/history", "/message", "/explain"):
            yield (await up.http.get(f"/api/session/{session}{what}")).text
        yield await feed_text(up, session)
    for path in ("session", "model", "provider", "agent", "tool", "config"):
        yield (await up.http.get(f"/api/{path}")).text


async def feed_text(up: Stack, session: str) -> str:
    """What a client of the feed gets, up to the newest event."""
    text = ""
    last = [event async for event in up.client.events(session)][-1]
    async with (
        asyncio.timeout(TIMEOUT_S),
        aclosing(up.client.follow(session, after=0, live=False)) as events,
    ):
        async for event in events:
            text += repr(event)
            if last.id in text:
                break
    return text


async def operations(up: Stack) -> AsyncIterator[str]:
    """What each process says about its health."""
    paths = ("/metrics", "/readyz", "/healthz")
    urls = [f"{base}{path}" for base in health_addresses(up) for path in paths]
    monitor = ("/varz", "/connz?subs=1", "/jsz?streams=1&consumers=1&config=1", "/subsz?subs=1")
    async with httpx.AsyncClient(timeout=TIMEOUT_S, trust_env=False) as http:
        for url in [*urls, *(f"{up.up.monitor}{path}" for path in monitor)]:
            yield (await http.get(url)).text


def health_addresses(up: Stack) -> list[str]:
    """Where the services serve their health. Only root can read where, except for the gateway."""
    ports: list[str] = []
    for process in up.up.processes:
        with suppress(PermissionError):
            variables = Path(f"/proc/{process.pid}/environ").read_text().split("\0")
            start = "FAIRLEAD_HEALTH_PORT="
            ports += [text.removeprefix(start) for text in variables if text.startswith(start)]
    return [up.up.http, *(f"http://127.0.0.1:{port}" for port in ports)]


async def command_output(place: Path, sessions: Iterable[str]) -> str:
    """What the commands for people print."""
    commands = [("doctor",), ("doctor", "--json"), *(("explain", session) for session in sessions)]
    outputs: list[str] = []
    for command in commands:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "fairlead_cli", *command, "--state", str(place / "state")),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await asyncio.wait_for(process.communicate(), TIMEOUT_S)
        outputs.append(output.decode(errors="replace"))
    return "\n".join(outputs)


def stored_files(state: Path) -> Iterable[tuple[str, bytes]]:
    """Every file under the state directory: no file there may hold a planted secret."""
    for path in state.rglob("*"):
        # Files of Postgres and JetStream come and go meanwhile, and sockets cannot be read.
        with suppress(OSError):
            if path.is_file():
                yield str(path), path.read_bytes()


def dumped_tables(dsn: str) -> Iterable[tuple[str, bytes]]:
    """All rows of all tables, because Postgres may keep long values compressed."""
    with psycopg.connect(dsn) as connection:
        tables = connection.execute(
            "SELECT schemaname, tablename FROM pg_tables WHERE schemaname IN ('projection', 'public')"
        ).fetchall()
        for schema, table in tables:
            statement = sql.SQL("COPY {} TO STDOUT").format(sql.Identifier(schema, table))
            with connection.cursor().copy(statement) as rows:
                yield f"{schema}.{table}", b"".join(bytes(row) for row in rows)


def own_secrets(state: Path) -> dict[str, str]:
    """The secrets that the stack made for itself, by the only file that may hold them."""
    files = (state / "token", *state.glob("nats/keys/*.nk"), *state.glob("postgres/passwords/*"))
    return {str(path): path.read_text().strip().rpartition(":")[2] for path in files}


def find_secrets(
    contents: Iterable[tuple[str, bytes]], secrets: Mapping[str, str] = SECRETS
) -> list[tuple[str, str]]:
    """The secrets in the contents: as they are, quoted for a URL, escaped for JSON, in base64."""
    forms = {
        name: (
            secret.encode(),
            quote(secret, safe="").encode(),
            secret.replace("/", "\\/").encode(),
            base64.b64encode(secret.encode()).rstrip(b"=")[:-1],
        )
        for name, secret in secrets.items()
    }
    return [
        (where, name)
        for where, content in contents
        for name, texts in forms.items()
        if any(text in content for text in texts)
    ]
