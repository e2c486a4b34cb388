"""Configuration: one frozen whole, and every mistake with its origin, its key and its reason."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from fairlead_schema.catalog import ModelRef
from fairlead_schema.commands.quota import QuotaLimits
from fairlead_service.config.configuration import Config, ConfigError, load
from fairlead_service.config.section import join_directories, split_directories

WHOLE = """
default_model = "acme/fast"

[provider.acme]
protocol = "openai-chat"
base_url = "http://127.0.0.1:9000"

[provider.acme.model.fast]
output = 8_192
cost = { input = 3.0, output = 15.0 }

[agent.build]
system = "Be careful."
permissions = [ { action = "*", resource = "*", effect = "allow" } ]

[runner]
sessions_max = 8
"""


def write_config(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "fairlead.toml"
    path.write_text(text)
    return path


def load_mistake(tmp_path: Path, text: str, **env: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load(write_config(tmp_path, text), env)
    return caught.value


def test_nothing_at_all_is_a_configuration() -> None:
    config = load(None, {})

    assert config == Config()
    assert (config.default_agent, config.model_ref()) == ("build", None)


def test_a_file_is_read_as_it_is_written(tmp_path: Path) -> None:
    config = load(write_config(tmp_path, WHOLE), {})

    assert config.model_ref() == ModelRef(provider_id="acme", id="fast")
    model = config.model(ModelRef(provider_id="acme", id="fast"))
    assert model is not None
    assert (model.output, model.cost.output) == (8192, 15.0)
    assert config.agent["build"].permissions[0].effect == "allow"
    assert config.runner.sessions_max == 8


def test_the_environment_names_the_file(tmp_path: Path) -> None:
    path = write_config(tmp_path, WHOLE)

    assert load(None, {"FAIRLEAD_CONFIG": str(path)}) == load(path, {})
    assert load(None, {"FAIRLEAD_CONFIG": ""}) == Config()


def test_variables_override_the_file(tmp_path: Path) -> None:
    env = {
        "FAIRLEAD_RUNNER_SESSIONS_MAX": "9",
        "FAIRLEAD_NATS_URL": "nats://elsewhere:1",
        "FAIRLEAD_LOG_LEVEL": "DEBUG",
        "FAIRLEAD_DEFAULT_AGENT": "build",
        "FAIRLEAD_GATEWAY_FRESH_TIMEOUT_S": "0.5",
        "PATH": "/bin",
        "FAIRLEAD_UNRELATED": "x",
    }

    config = load(write_config(tmp_path, WHOLE), env)

    assert (config.runner.sessions_max, config.nats.url) == (9, "nats://elsewhere:1")
    assert (config.log.level, config.gateway.fresh_timeout_s) == ("DEBUG", 0.5)


def test_a_model_may_have_slashes_in_its_name(tmp_path: Path) -> None:
    text = WHOLE.replace('"acme/fast"', '"acme/org/fast"').replace("model.fast", 'model."org/fast"')

    assert load(write_config(tmp_path, text), {}).model_ref() == ModelRef(
        provider_id="acme", id="org/fast"
    )


@pytest.mark.parametrize(
    ("text", "key", "reason"),
    [
        ("[runner]\nturns = 1", "runner.turns", "no such setting"),
        ("wat = 1", "wat", "no such setting"),
        ("[runner]\nsessions_max = 0", "runner.sessions_max", "greater than 0"),
        ('[runner]\nsessions_max = "many"', "runner.sessions_max", "integer"),
        ("[health]\nport = 70000", "health.port", "65535"),
        ('[log]\nlevel = "LOUD"', "log.level", "DEBUG"),
        ("nats = 3", "nats", "dictionary"),
        ('[provider.acme]\nprotocol = "telepathy"\nbase_url = "http://x"', "provider.acme.protocol",
         "openai-chat"),
        ('[provider.acme]\nprotocol = "openai-chat"', "provider.acme.base_url", "required"),
        ('[provider.acme]\nprotocol = "openai-chat"\nbase_url = "ftp://x"',
         "provider.acme.base_url", "pattern"),
        ('default_model = "fast"', "default_model", "pattern"),
        ('default_model = "acme/fast"', "", "no [provider.acme] section"),
        ('default_agent = "ghost"', "", "no [agent] section"),
        ("[agent.build]\ndisabled = true", "", "default_agent 'build'"),
        ("[runner]\nwake_heartbeat_s = 1.5", "runner", "half of wake_deadline_s"),
        ('[tools]\npool = "a.b"', "tools.pool", "pattern"),
    ],
)  # fmt: skip
def test_a_mistake_says_its_file_its_key_and_its_reason(
    tmp_path: Path, text: str, key: str, reason: str
) -> None:
    error = load_mistake(tmp_path, text)

    assert error.origin == str(tmp_path / "fairlead.toml")
    assert error.key == key
    assert reason in error.reason
    assert str(error).startswith(f"{error.origin}: ")


@pytest.mark.parametrize("text", ["= 3", "[runner", 'a = "', "a = 1\na = 2"])
def test_what_is_no_toml_is_told_with_its_place(tmp_path: Path, text: str) -> None:
    error = load_mistake(tmp_path, text)

    assert (error.key, "not valid TOML" in error.reason) == ("", True)


def test_bytes_that_are_no_text_are_no_toml(tmp_path: Path) -> None:
    path = tmp_path / "fairlead.toml"
    path.write_bytes(b"\xff\xfe")

    with pytest.raises(ConfigError, match="not valid TOML"):
        load(path, {})


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.toml", tmp_path):
        with pytest.raises(ConfigError) as caught:
            load(None, {"FAIRLEAD_CONFIG": str(path)})

        assert caught.value.origin == str(path)
        assert caught.value.reason


def test_a_mistake_of_the_environment_names_the_variable(tmp_path: Path) -> None:
    """The file is correct: the message sends its reader to the environment."""
    with_file = load_mistake(tmp_path, WHOLE, FAIRLEAD_RUNNER_SESSIONS_MAX="many")
    with pytest.raises(ConfigError) as alone:
        load(None, {"FAIRLEAD_HEALTH_PORT": "x"})

    assert (with_file.origin, with_file.key) == (
        "FAIRLEAD_RUNNER_SESSIONS_MAX",
        "runner.sessions_max",
    )
    assert alone.value.origin == "FAIRLEAD_HEALTH_PORT"


def test_an_unknown_variable_of_a_known_section_is_a_mistake() -> None:
    with pytest.raises(ConfigError, match=r"FAIRLEAD_RUNNER_SESSION_MAX: runner\.session_max"):
        load(None, {"FAIRLEAD_RUNNER_SESSION_MAX": "3"})


def test_variables_that_kubernetes_sets_for_its_services_are_ignored() -> None:
    """Every pod gets them for a service named `fairlead-gateway`, also pods that do not use it."""
    env = {
        "FAIRLEAD_GATEWAY_PORT": "tcp://10.0.0.7:8420",
        "FAIRLEAD_GATEWAY_PORT_8420_TCP": "tcp://10.0.0.7:8420",
        "FAIRLEAD_GATEWAY_PORT_8420_TCP_ADDR": "10.0.0.7",
        "FAIRLEAD_GATEWAY_PORT_8420_TCP_PORT": "8420",
        "FAIRLEAD_GATEWAY_PORT_8420_TCP_PROTO": "tcp",
        "FAIRLEAD_GATEWAY_SERVICE_HOST": "10.0.0.7",
        "FAIRLEAD_GATEWAY_SERVICE_PORT": "8420",
        "FAIRLEAD_GATEWAY_SERVICE_PORT_HTTP": "8420",
        "FAIRLEAD_NATS_PORT": "tcp://10.0.0.8:4222",
    }

    assert load(None, env) == Config()
    assert load(None, {**env, "FAIRLEAD_GATEWAY_HOST": "::"}).gateway.host == "::"


@pytest.mark.parametrize("port", ["8421", "http"])
def test_a_port_of_our_own_is_not_taken_for_one_of_kubernetes(port: str) -> None:
    env = {"FAIRLEAD_GATEWAY_PORT": port}
    if port.isdigit():
        assert load(None, env).gateway.port == int(port)
    else:
        with pytest.raises(ConfigError, match="FAIRLEAD_GATEWAY_PORT"):
            load(None, env)


def test_a_variable_over_a_key_that_is_no_section_is_a_mistake_not_a_crash(tmp_path: Path) -> None:
    error = load_mistake(tmp_path, "nats = 3", FAIRLEAD_NATS_URL="nats://x")

    assert (error.origin, error.key) == (str(tmp_path / "fairlead.toml"), "nats")


def test_relations_between_knobs_hold_for_every_source(tmp_path: Path) -> None:
    config = load(None, {"FAIRLEAD_RUNNER_WAKE_DEADLINE_S": "10"})

    assert config.runner.wake_deadline_s == 10
    error = load_mistake(tmp_path, WHOLE, FAIRLEAD_RUNNER_WAKE_DEADLINE_S="1")
    assert "wake_heartbeat_s" in error.reason


def test_a_configuration_never_changes() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        setattr(Config().nats, "url", "nats://x")  # noqa: B010 - mypy knows it is frozen


def test_settings_of_compaction_come_together_field_by_field(tmp_path: Path) -> None:
    """G-05, G-04: the environment over the file over the defaults, read once at the start."""
    path = write_config(tmp_path, "[compaction]\nbuffer = 100\nkeep_tokens = 50\n")

    compaction = load(path, {"FAIRLEAD_COMPACTION_BUFFER": "200"}).compaction

    assert (compaction.auto, compaction.buffer, compaction.keep_tokens) == (True, 200, 50)
    assert (compaction.summary_tokens, compaction.excerpt, compaction.calibrate) == (
        4_096,
        2_000,
        True,
    )


def test_the_quotas_of_a_tenant_are_its_own_else_those_of_all() -> None:
    """B11: limits are on without any configuration, and zero takes one away."""
    tenant = {"acme": {"quota": {"turns": 5, "calls": 0}}}
    config = Config.model_validate({"quota": {"turns": 9, "pending": 0}, "tenant": tenant})

    own, shared = config.quotas("acme"), config.quotas("other")

    assert (own.turns, own.calls, own.pending) == (5, None, None)
    assert (shared.turns, shared.calls, shared.pending) == (9, 2_000, None)
    assert own.sessions == shared.sessions == 100_000
    assert all(limit is not None for limit in Config().quotas("default").model_dump().values())


def test_the_quotas_of_a_principal_are_off_until_somebody_sets_them() -> None:
    """B11: a tenant may set its own, and zero takes one away."""
    quota = {"principal": {"sessions": 9, "pending": 8}}
    tenant = {"acme": {"quota": {"turns": 5, "principal": {"sessions": 0, "log_bytes": 7}}}}
    config = Config.model_validate({"quota": quota, "tenant": tenant})

    own, shared = config.principal_quotas("acme"), config.principal_quotas("other")

    assert (own.sessions, own.log_bytes, own.pending) == (None, 7, 8)
    assert (shared.sessions, shared.log_bytes, shared.pending) == (9, None, 8)
    assert own.turns is None
    assert (config.quotas("acme").turns, config.quotas("acme").sessions) == (5, 100_000)
    assert Config().principal_quotas("default") == QuotaLimits()


def test_an_empty_variable_takes_back_a_key_file_of_the_configuration(tmp_path: Path) -> None:
    """B8: the embedded stack uses its own keys, whatever the file says about other servers."""
    path = tmp_path / "fairlead.toml"
    path.write_text(
        '[nats]\ncreds_file = "prod.creds"\ntls_ca = "ca.pem"\ninbox_prefix = "_INBOX_x"\n'
    )
    empty = {f"FAIRLEAD_NATS_{name}": "" for name in ("CREDS_FILE", "TLS_CA", "INBOX_PREFIX")}

    address = load(path, {**empty, "FAIRLEAD_NATS_NKEY_FILE": "own.nk"}).nats.address("ingest")

    assert (address.nkey_file, address.creds_file) == ("own.nk", None)
    assert not address.demands_tls
    assert address.inbox_prefix == "_INBOX_ingest"


@pytest.mark.parametrize(
    "text",
    [
        'nkey_file = "a"\ncreds_file = "b"',
        'tls_cert = "a"',
        'tls_key = "a"',
        'inbox_prefix = "fairlead.log"',
        'inbox_prefix = "_INBOX.>"',
    ],
)
def test_settings_of_nats_that_contradict_each_other_are_refused(tmp_path: Path, text: str) -> None:
    """B8: a wrong combination stops the process and does not connect in another way."""
    path = tmp_path / "fairlead.toml"
    path.write_text(f"[nats]\n{text}\n")

    with pytest.raises(ConfigError, match="nats"):
        load(path, {})


@pytest.mark.parametrize("names", [(), ("/a",), ("/a", "/b"), ("/a:b", "/c"), ("[x]",)])
def test_a_list_of_directories_survives_a_variable(names: tuple[str, ...]) -> None:
    """B6: a colon in the path of a state directory opened the state to every tool."""
    variable = join_directories(names)

    assert names == tuple(name for name in split_directories(variable) if name)


def test_a_variable_with_a_broken_list_of_directories_is_refused() -> None:
    for value in ("[1]", "[", '["/a"'):
        with pytest.raises(ConfigError, match="private_directories"):
            load(None, {"FAIRLEAD_TOOLS_PRIVATE_DIRECTORIES": value})


@pytest.mark.parametrize(
    "address",
    [
        "metrics.example",
        "javascript:alert(1)",
        "data:text/html,x",
        "https://",
        "https://user:secret@metrics.example",
        "https://metrics.example/a b",
        "https://[::1",
    ],
)
def test_only_a_page_without_secrets_is_linked_for_metrics(address: str) -> None:
    with pytest.raises(ValueError, match=r"like https://metrics\.example"):
        Config.model_validate({"gateway": {"metrics_url": address}})


@pytest.mark.parametrize("address", ["", "http://10.0.0.1:3000", "https://m.example/d/1?orgId=1#x"])
def test_a_page_of_metrics_is_kept_as_it_is(address: str) -> None:
    config = Config.model_validate({"gateway": {"metrics_url": address}})

    assert config.gateway.metrics_url == address
