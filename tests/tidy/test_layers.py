"""The import contracts hold on the tree, and each one is seen to break on a planted violation."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
CONTRACTS: list[str] = [contract["name"] for contract in CONFIG["contracts"]]


class Plant(NamedTuple):
    """An import that one contract, and only that one, forbids."""

    contract: str
    package: str
    module: str


PLANTS = [
    Plant(
        "Layers: apps over services over libraries over schema",
        "fairlead_ingest",
        "fairlead_runner",
    ),
    Plant("Schema is a leaf: no I/O, clock, randomness or framework", "fairlead_schema", "time"),
    Plant("The core and the projector's statements are pure", "fairlead_session", "asyncio"),
    Plant("Providers know nothing of sessions or the log", "fairlead_llm", "psycopg"),
    Plant(
        "The client stands alone: it imports the schema, httpx and pydantic",
        "fairlead_client",
        "orjson",
    ),
    Plant("Only the event log imports nats", "fairlead_gateway", "nats"),
    Plant("The fold imports no decider", "fairlead_session.fold", "fairlead_session.next_move"),
    Plant(
        "Only apps and tests verify logs", "fairlead_runner", "fairlead_session.verify.unfinished"
    ),
    Plant(
        "Only the gateway's application knows the view for the terminal client",
        "fairlead_gateway.live",
        "fairlead_gateway.opencode_view.present_fields",
    ),
    Plant(
        "Only the command for editors knows the Agent Client Protocol",
        "fairlead_cli.embedded",
        "acp",
    ),
    Plant("The translation for editors is pure", "fairlead_cli.acp.translation", "asyncio"),
    Plant(
        "Only the gateway's application knows the view for front ends",
        "fairlead_gateway.turn_view",
        "ag_ui",
    ),
    Plant(
        "The translation for front ends is pure",
        "fairlead_gateway.ag_ui_view.translation",
        "asyncio",
    ),
    Plant(
        "Only the gateway's application knows the view for other agents",
        "fairlead_gateway.reads",
        "a2a",
    ),
    Plant(
        "The translation for other agents is pure",
        "fairlead_gateway.a2a_view.translation",
        "asyncio",
    ),
    Plant(
        "The translation for the terminal client is pure",
        "fairlead_gateway.opencode_view.translation",
        "asyncio",
    ),
    Plant(
        "What the terminal shows is folded without a clock, a file or a socket",
        "fairlead_cli.chat.view",
        "fairlead_cli.errors",
    ),
    Plant("The state of a session is a leaf", "fairlead_session.state", "fairlead_session.frozen"),
]
SESSION = ROOT / "libs/session/src/fairlead_session"
# Pure functions of schema values that the fold shares with the deciders.
SHARED_WITH_FOLD = {
    "fairlead_session.idempotency.reducers",
    "fairlead_session.relocation.reducers",
    "fairlead_session.revert.reducers",
    "fairlead_session.execution.rest",
    "fairlead_session.execution.usage_sums",
    "fairlead_session.input.fingerprint",
    "fairlead_session.input.prompt_title",
    "fairlead_session.compaction.estimate",
    "fairlead_session.calls.child_ids",
    "fairlead_session.media.data_uri",
}


def copy_packages(tree: Path) -> Path:
    """A copy of every package, with the configuration beside them."""
    for source in ROOT.glob("*/*/src"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(source, tree, dirs_exist_ok=True, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", tree)
    return tree


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The report of one run over a tree that holds every plant."""
    tree = copy_packages(tmp_path_factory.mktemp("tree"))
    for plant in PLANTS:
        (tree / plant.package.replace(".", "/") / "planted.py").write_text(
            f"import {plant.module}\n"
        )
    code, report = lint(tree)
    assert code == 1, report
    return report


def lint(tree: Path) -> tuple[int, str]:
    process = subprocess.run(
        [BIN / "lint-imports", "--no-cache", "--no-logo"],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree), "NO_COLOR": "1", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    return process.returncode, process.stdout + process.stderr


def broken_imports(report: str) -> dict[str, set[str]]:
    """The first import of every chain that the report lists under each broken contract."""
    _summary, *details = report.partition("Broken contracts")[2].partition("\n")
    imports: dict[str, set[str]] = {}
    for line in "".join(details).splitlines():
        if line in CONTRACTS:
            imports[line] = set()
        elif line.startswith("- ") and " -> " in line:
            imports[next(reversed(imports))].add(line.strip(" -").partition(" (")[0])
    return imports


def test_the_tree_keeps_every_contract(tmp_path: Path) -> None:
    code, report = lint(copy_packages(tmp_path))

    assert code == 0, report
    assert all(f"{contract} KEPT" in report for contract in CONTRACTS), report


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.package)
def test_a_planted_import_breaks_its_contract_and_no_other(planted: str, plant: Plant) -> None:
    expected = {f"{plant.package}.planted -> {plant.module}"}

    assert f"{plant.contract} BROKEN" in planted
    assert broken_imports(planted)[plant.contract] == expected, planted


def forbidden(contract: str) -> set[str]:
    return set(CONFIG["contracts"][CONTRACTS.index(contract)]["forbidden_modules"])


def session_modules() -> set[str]:
    """Every module of the core, by its dotted name."""
    files = (path.relative_to(SESSION).with_suffix("") for path in SESSION.rglob("*.py"))
    return {
        ".".join(("fairlead_session", *file.parts)) for file in files if file.name != "__init__"
    }


def covers(packages: set[str], module: str) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


@pytest.mark.parametrize(
    ("contract", "allowed"),
    [
        (
            "The fold imports no decider",
            SHARED_WITH_FOLD
            | {
                f"fairlead_session.{name}"
                for name in ("fold", "state", "frozen", "persistent", "identity_memo")
            },
        ),
        (
            "The state of a session is a leaf",
            {"fairlead_session.state", "fairlead_session.persistent"},
        ),
    ],
)
def test_the_contracts_of_the_core_name_every_module(contract: str, allowed: set[str]) -> None:
    """A new module of the core is forbidden there until somebody decides otherwise."""
    others = {module for module in session_modules() if not covers(allowed, module)}

    assert [module for module in sorted(others) if not covers(forbidden(contract), module)] == []


def test_the_contract_of_verify_names_every_package() -> None:
    sources = set(
        CONFIG["contracts"][CONTRACTS.index("Only apps and tests verify logs")]["source_modules"]
    )
    others = {module for module in session_modules() if ".verify." not in module}

    assert [module for module in sorted(others) if not covers(sources, module)] == []


def test_every_contract_has_a_plant() -> None:
    assert [plant.contract for plant in PLANTS] == CONTRACTS


@pytest.mark.parametrize("call", ["datetime.datetime.now(tz)", "datetime.date.today()"])
def test_the_core_may_not_read_the_clock(tmp_path: Path, call: str) -> None:
    planted = tmp_path / "libs/session/src/fairlead_session/planted.py"
    planted.parent.mkdir(parents=True)
    planted.write_text(f"import datetime\n\ntz = datetime.UTC\nat = {call}\n")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copy(ROOT / "libs/session/ruff.toml", tmp_path / "libs/session")

    process = subprocess.run(
        [BIN / "ruff", "check", "--no-cache", "--select", "TID251", planted],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert process.returncode == 1
    assert "The core is pure: time is an argument." in process.stdout
