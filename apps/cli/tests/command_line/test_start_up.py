"""How quickly a command starts: what is loaded, counted in modules, because seconds are noisy."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead_cli.command_line.command_table import COMMANDS

HEAVY = {
    "aiohttp",
    "httpx",
    "nats",
    "psycopg",
    "pydantic",
    "rich",
    "starlette",
    "textual",
    "uvloop",
}
FAR = {
    *("aiohttp", "click", "faststream", "nats", "psycopg", "pygments", "starlette", "textual"),
    *("fairlead_eventlog", "fairlead_service.config.configuration", "fairlead_session", "uvloop"),
}
UNUSED = (
    "fairlead_client.sync_client",
    "fairlead_client.async_client.nats",
    "fairlead_client.answers.event_models",
    "fairlead_schema.events",
    "fairlead_schema.record",
)
SESSION = "ses_0001"
TO_A_GATEWAY = [
    ["sessions", "--json"],
    ["prompt", "hi"],
    ["cost"],
    ["tail", SESSION],
    ["export", SESSION, "--output", "/dev/null"],
    ["shell", SESSION, "ls"],
    ["explain", SESSION],
    ["inbox", SESSION],
    ["asks"],
    ["reply", SESSION, "once"],
    ["interrupt", SESSION],
    ["resume", SESSION],
    ["undo", SESSION],
    ["redo", SESSION],
    ["cancel", SESSION, "msg_0001"],
    ["rename", SESSION, "a title"],
    ["quota"],
    ["top", "--json"],
]
NO_CONFIG = ["--config", "/nowhere/fairlead.toml"]
BEFORE_THEIR_WORK = [
    ["up", *NO_CONFIG],
    ["models", *NO_CONFIG],
    ["token", "list", *NO_CONFIG],
    ["secrets", "/nowhere", *NO_CONFIG],
    ["provision", *NO_CONFIG],
    ["provision", "--nats-auth", "/nowhere", *NO_CONFIG],
    ["migrate", *NO_CONFIG],
    ["migrate", "--create-roles"],
    ["rebuild", *NO_CONFIG],
    ["verify", *NO_CONFIG],
    ["verify", "/nowhere"],
    ["audit", *NO_CONFIG],
    ["backup", "/nowhere", *NO_CONFIG],
    ["restore", "/nowhere"],
    ["purge", SESSION, *NO_CONFIG],
    ["pool", "list", *NO_CONFIG],
    ["pool", "drain", "a", *NO_CONFIG],
    ["quota", "--tenant", "a", *NO_CONFIG],
    ["capacity", "--agents", "1"],
    ["doctor", "--state", "/nowhere"],
    ["bench", "nothing"],
]
SERVERS = FAR - {"fairlead_eventlog", "fairlead_service.config.configuration"} | {
    *("cryptography", "fairlead_eventlog.jetstream", "fairlead_projector", "h2", "nacl"),
    *("prometheus_client", "uvicorn"),
}
"""What only speaks to servers, or is one."""
PROGRAM = """
import sys
from fairlead_cli.__main__ import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
print("loaded:", *sys.modules)
"""
AWAY = ["--http", "http://127.0.0.1:9"]


def loaded(*arguments: str) -> set[str]:
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], check=True, capture_output=True, text=True
    )
    return set(process.stdout.rpartition("loaded:")[2].split())


def test_the_help_loads_nothing_but_the_list_of_commands() -> None:
    modules = loaded("--help")

    assert modules & HEAVY == set()
    own = {name for name in modules if name.startswith("fairlead")}
    assert own == {
        "fairlead_cli",
        "fairlead_cli.__main__",
        "fairlead_cli.command_line",
        "fairlead_cli.command_line.argument_parser",
        "fairlead_cli.command_line.command_table",
        "fairlead_cli.command_line.module_loader",
        "fairlead_cli.errors",
        "fairlead_cli.command_line.exit_codes",
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_loads_its_options_alone(name: str) -> None:
    modules = loaded(name, "--help")

    assert modules & HEAVY == set()
    assert not [module for module in modules if module.startswith("fairlead_cli.commands")]
    assert f"fairlead_cli.options.{COMMANDS[name].module.partition('.')[0]}" in modules


@pytest.mark.parametrize("arguments", TO_A_GATEWAY, ids=lambda words: words[0])
def test_a_command_that_speaks_to_a_gateway_loads_no_server_and_no_other_command(
    arguments: list[str],
) -> None:
    modules = loaded(*arguments, *AWAY)

    assert "fairlead_client" in modules
    assert modules & FAR == set()
    assert not [name for name in modules if name.startswith(UNUSED)]
    assert "h2" not in modules
    commands = {name for name in modules if name.startswith("fairlead_cli.commands.")}
    module = f"fairlead_cli.commands.{COMMANDS[arguments[0]].module}"
    assert commands == {module, module.rpartition(".")[0]}


@pytest.mark.parametrize("arguments", BEFORE_THEIR_WORK, ids=" ".join)
def test_a_command_of_operators_reads_arguments_and_settings_before_it_loads_servers(
    arguments: list[str],
) -> None:
    """A wrong file or argument is said in the time of a light command."""
    assert loaded(*arguments) & SERVERS == set()


WHEN_NATS_ANSWERS = [
    ["verify"],
    ["purge", SESSION],
    ["pool", "list"],
    ["rebuild"],
    ["quota", "--tenant", "a"],
]
WORK = {
    *("fairlead_eventlog.jetstream.connect", "fairlead_projector", "fairlead_schema.events"),
    *("nats.js.api", "prometheus_client", "psycopg"),
}


def test_a_command_of_operators_connects_before_it_loads_its_work() -> None:
    """An address without a server is said in the time of a light command."""
    environment = {**os.environ, "FAIRLEAD_NATS_URL": "nats://127.0.0.1:9"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *arguments, "--state", "/nowhere"],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for arguments in WHEN_NATS_ANSWERS
    ]
    for arguments, process in zip(WHEN_NATS_ANSWERS, processes, strict=True):
        output, errors = process.communicate()
        modules = set(output.rpartition("loaded:")[2].split())

        assert "cannot be reached" in errors, arguments
        assert "nats" in modules, arguments
        assert modules & WORK == set(), arguments


def test_the_doctor_looks_at_this_machine_before_it_loads_servers() -> None:
    program = "import sys, fairlead_cli.commands.stack.doctor; print('loaded:', *sys.modules)"
    process = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )

    assert set(process.stdout.split()) & SERVERS == set()


@pytest.mark.parametrize("name", ["init", "models"])
def test_no_http_is_loaded_where_no_model_server_listens(name: str, tmp_path: Path) -> None:
    """The first command of a newcomer is quick."""
    keyless = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    away = {f"{each}_BASE_URL": "http://127.0.0.1:9" for each in ("OLLAMA", "LMSTUDIO", "VLLM")}
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM, name],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=keyless | away,
    )

    assert set(process.stdout.rpartition("loaded:")[2].split()) & (SERVERS | {"httpx"}) == set()


def test_http_2_can_be_used_although_it_is_not_loaded_at_first() -> None:
    program = """
import sys
from fairlead_cli.command_line.module_loader import load_http
load_http()
assert "h2" not in sys.modules
import httpx
httpx.Client(http2=True)
from httpcore._sync.http2 import HTTP2Connection
HTTP2Connection(None, None)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_screen_of_a_session_opens_without_the_libraries_of_markdown() -> None:
    program = "import sys, fairlead_cli.chat.chat_launch; print('loaded:', *sys.modules)"
    process = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    modules = set(process.stdout.split())

    assert "textual.app" in modules
    assert modules & {"markdown_it", "rich.markdown", "nats"} == set()
    assert not [name for name in modules if name.startswith(UNUSED)]


GREETING = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": 1, "clientCapabilities": {}},
}


def test_an_editor_is_greeted_before_the_client_of_the_gateway_is_loaded() -> None:
    program = PROGRAM.replace("*sys.modules)", "*sys.modules, file=sys.stderr)")
    process = subprocess.run(
        [sys.executable, "-c", program, "acp", *AWAY],
        check=True,
        capture_output=True,
        text=True,
        input=json.dumps(GREETING) + "\n",
    )
    modules = set(process.stderr.rpartition("loaded:")[2].split())

    assert json.loads(process.stdout)["result"]["agentInfo"]["name"] == "fairlead"
    assert "acp.schema" in modules
    assert modules & (FAR | {"httpx", "opentelemetry"}) == set()


def test_the_models_of_the_editor_protocol_are_built_at_their_first_use() -> None:
    program = """
import pydantic
from fairlead_cli.command_line.module_loader import load_editor_protocol
configure = pydantic.ConfigDict
load_editor_protocol()
from acp import schema
assert not schema.PromptRequest.__pydantic_complete__
assert schema.PromptRequest.model_fields["session_id"].description is None
schema.PromptRequest.model_validate({"sessionId": "a", "prompt": [{"type": "text", "text": "hi"}]})
assert schema.PromptRequest.__pydantic_complete__
assert pydantic.ConfigDict is configure
class Later(pydantic.BaseModel):
    name: str
assert Later.__pydantic_complete__
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_an_editor_without_pipes_is_told_at_once() -> None:
    """It waited for ever on /dev/null."""
    command = [sys.executable, "-m", "fairlead_cli", "acp", *AWAY]
    process = subprocess.run(
        command, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120
    )

    assert process.returncode == 1
    assert "standard input and output must be pipes" in process.stderr
