"""`fairlead chat` in real terminals: every flow, every kind of terminal, every way to lose the server."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from subprocess import run

import pytest
import pytest_asyncio

from fairlead_client import AsyncFairlead
from fairlead_testing.images import PNG
from fairlead_testing.protocol_stack import ask_from_below, slow_session, task_prompt
from fairlead_testing.stack import Stack, stack
from fairlead_testing.terminal import (
    CTRL_C,
    ENTER,
    ESCAPE,
    PAGE_UP,
    TAB,
    UP,
    Terminal,
)
from tests.integration.kept_screens import keep

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(240),
]

FAIRLEAD = str(Path(sys.executable).with_name("fairlead"))
CONFIG = """
permissions = [ { action = "bash", resource = "rm *", effect = "ask" } ]
"""
SLOW = "[[sim: chunks=80 delay_ms=100]]"
QUESTIONS = (
    '{"questions":[{"question":"Which way?","header":"Way","options":'
    '[{"label":"Left","description":"the old one"},{"label":"Right","description":"the new one"}]}]}'
)
ANSWER = (
    "# Plan\n\nSome **bold** words and `code`.\n\n1. first\n2. second\n\n```python\nprint(1)\n```"
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def up(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    place = tmp_path_factory.mktemp("chat")
    for parent in (place, *place.parents[:2]):
        parent.chmod(0o755)
    config = place / "fairlead.toml"
    config.write_text(CONFIG)
    async with stack(place / "state", config=config) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def fairlead(up: Stack) -> AsyncIterator[AsyncFairlead]:
    async with AsyncFairlead(up.up.http, token=up.up.state.token) as client:
        yield client


def chat(
    up: Stack,
    place: Path,
    *options: str,
    size: tuple[int, int] = (100, 30),
    env: Mapping[str, str] | None = None,
) -> Terminal:
    command = [FAIRLEAD, "chat", "--state", str(up.up.state.root), *options]
    return Terminal(command, cwd=place, size=size, env={"HOME": str(place), **(env or {})})


def token_command(up: Stack, *arguments: str) -> str:
    command = [FAIRLEAD, "token", *arguments, "--state", str(up.up.state.root)]
    return run(command, capture_output=True, text=True, check=True).stdout.strip()


def make_key(up: Stack) -> str:
    return token_command(up, "create", "--role", "user")


async def test_a_text_turn_is_drawn_as_markdown(up: Stack, tmp_path: Path) -> None:
    async with chat(up, tmp_path) as terminal:
        await terminal.until("A new session")
        terminal.send(f"Explain it. [[sim: reasoning='I think.' answer='{ANSWER}']]")
        keep("text-turn", await terminal.until("    print(1)", "ready · sim/fast", "build"))


async def test_a_permission_is_rejected_with_a_reason_that_the_model_reads(
    up: Stack, tmp_path: Path
) -> None:
    async with chat(up, tmp_path) as terminal:
        await terminal.until("A new session")
        terminal.send(
            "Clean. [[sim: tool=bash args='{\"command\":\"rm x\"}' ; answer='Not removed.']]"
        )
        keep("permission", await terminal.until("wants to run", "rm x", "asks you"))
        terminal.type("4")
        await terminal.until("Why not, or what instead?")
        terminal.type("keep it" + ENTER)
        keep("permission-rejected", await terminal.until("(keep it)", "\n  Not removed.", "ready"))


async def test_a_question_is_answered_by_a_number(up: Stack, tmp_path: Path) -> None:
    async with chat(up, tmp_path) as terminal:
        await terminal.until("A new session")
        terminal.send(f"Choose. [[sim: tool=question args='{QUESTIONS}' ; answer='Right it is.']]")
        keep("question", await terminal.until("Which way?", "2. Right", "asks you"))
        terminal.type("2")
        await terminal.until("Which way? → Right", "Right it is.", "ready")


async def test_a_person_steers_queues_interrupts_and_resumes(up: Stack, tmp_path: Path) -> None:
    async with chat(up, tmp_path) as terminal:
        await terminal.until("A new session")
        terminal.send(SLOW)
        await terminal.until("word5", "Esc interrupts")
        terminal.send("Use metres.")
        terminal.paste("And then the tests.")
        terminal.type(TAB)
        await terminal.until("next │ Use metres.", "later │ And then the tests.")
        terminal.type(ESCAPE)
        stopped = await terminal.until("Interrupted.", "/resume runs what waits")
        assert "word79" not in stopped
        terminal.send("/resume")
        await terminal.until("You said: And then the tests.", "ready", gone="later │")


async def test_a_session_is_resumed_by_its_id_the_latest_and_from_a_list(
    up: Stack, fairlead: AsyncFairlead, tmp_path: Path
) -> None:
    session = (await fairlead.create(directory=str(tmp_path))).id
    await fairlead.ask(session, "Remember the harbour.")
    for options in (["--resume", session], ["--resume", "latest"]):
        async with chat(up, tmp_path, *options) as terminal:
            await terminal.until("> Remember the harbour.", "You said", "ready")

    async with chat(up, tmp_path, "--resume") as terminal:
        await terminal.until("Sessions", "type to search")
        terminal.type("harbour")
        await terminal.until("harbour", gone="Clean.")
        terminal.type(ENTER)
        await terminal.until("> Remember the harbour.", "You said", "ready")


async def test_a_gateway_that_dies_and_returns_is_noticed_only_in_the_status(
    up: Stack, tmp_path: Path
) -> None:
    """H-30: no word is lost or shown twice, and no line says that the connection broke."""
    async with chat(up, tmp_path) as terminal:
        await terminal.until("A new session")
        terminal.send(SLOW)
        await terminal.until("word5 ")
        up.up.kill("gateway", 0, signal.SIGKILL)
        shown = await terminal.until("word78", "word79", "ready")
        words = shown.replace("\n", " ").split()
        assert [word for word in words if word.startswith("word")] == [
            f"word{number}" for number in range(80)
        ]
        await up.up.wait_ready()
        terminal.send("Still there?")
        await terminal.until("You said: Still there?")


async def test_a_prompt_to_a_gateway_that_is_away_arrives_when_it_is_back(
    up: Stack, tmp_path: Path
) -> None:
    async with chat(up, tmp_path) as terminal:
        await terminal.until("A new session")
        terminal.send("First")
        await terminal.until("You said: First", "ready")
        up.up.kill("gateway", 0, signal.SIGSTOP)
        terminal.send("Second")
        await terminal.until("sending │ Second")
        up.up.kill("gateway", 0, signal.SIGCONT)
        await terminal.until("You said: Second", "ready", gone="sending │")


async def test_a_session_that_is_deleted_while_shown_says_what_to_do(
    up: Stack, fairlead: AsyncFairlead, tmp_path: Path
) -> None:
    session = (await fairlead.create(directory=str(tmp_path))).id
    await fairlead.ask(session, "Hello")
    async with chat(up, tmp_path, "--resume", session) as terminal:
        await terminal.until("You said: Hello")
        await fairlead.request("DELETE", f"/api/session/{session}", params={"purge": "true"})
        keep("deleted", await terminal.until("This session was deleted."))
        terminal.send("/new")
        await terminal.until("A new session")


async def test_forty_columns_are_enough(up: Stack, tmp_path: Path) -> None:
    async with chat(up, tmp_path, size=(40, 24)) as terminal:
        await terminal.until("A new session")
        terminal.send(
            f"Go. [[sim: tool=bash args='{{\"command\":\"rm {'x' * 60}\"}}' ; answer='Ok.']]"
        )
        screen = await terminal.until("wants to run", "asks you")
        keep("forty-columns", screen)
        assert all(len(line) <= 40 for line in screen.split("\n"))
        terminal.type("1")
        await terminal.until("Ok.", "ready")
        terminal.resize(80, 24)
        await terminal.until("Permitted once: bash rm\n", "ready · sim/fast", "build")


async def test_a_terminal_without_colour_gets_none(up: Stack, tmp_path: Path) -> None:
    async with chat(up, tmp_path, env={"NO_COLOR": "1"}) as terminal:
        await terminal.until("A new session")
        terminal.send(f"Go. [[sim: answer='{ANSWER}']]")
        keep("no-colour", await terminal.until("    print(1)", "ready · sim/fast", "build"))
        codes = {code for piece in terminal.raw.split(b"\x1b[")[1:] for code in _colours(piece)}
        assert codes == set()


_DEFAULTS = frozenset({b"39", b"49"})


def _colours(piece: bytes) -> list[bytes]:
    """The codes of colours in one sequence for styles."""
    codes, end, _ = piece.partition(b"m")
    if not end or not codes.replace(b";", b"").isdigit():
        return []
    return [
        code
        for code in codes.split(b";")
        if code not in _DEFAULTS and code[:1] in b"349" and len(code) > 1
    ]


async def test_broken_bytes_from_the_keyboard_and_from_tools_do_no_harm(
    up: Stack, tmp_path: Path
) -> None:
    command = "printf 'a\\\\377b \\\\033[31mred\\\\033[0m\\\\033]0;x\\\\007 end'"
    async with chat(up, tmp_path) as terminal:
        await terminal.until("A new session")
        terminal.type(b"caf\xff\xfe\xc3\xa9 ")
        await terminal.until("caf", "é")
        terminal.type("x" + ENTER)
        await terminal.until("You said: caf", "ready")
        terminal.send(f"! {command}".replace("\\\\", "\\"))
        shown = await terminal.until("✓ ! printf", "red end")
        assert "Traceback" not in shown


async def test_files_complete_and_earlier_prompts_return(up: Stack, tmp_path: Path) -> None:
    (tmp_path / "harbour.md").write_text("# Harbour")
    async with chat(up, tmp_path) as terminal:
        await terminal.until("A new session")
        terminal.type("Read @harb")
        await terminal.until("@harbour.md")
        terminal.type(TAB)
        await terminal.until("Read @harbour.md")
        terminal.type(ENTER)
        await terminal.until("+ harbour.md", "ready")
        terminal.type(UP)
        await terminal.until("│ Read @harbour.md")
        terminal.type(CTRL_C)
        terminal.type("/mo")
        keep("completion", await terminal.until("/model  use another model"))
        terminal.type(TAB + "sim/slow" + ENTER)
        await terminal.until("The model is sim/slow now.")


async def test_long_text_and_images_are_attached(up: Stack, tmp_path: Path) -> None:
    image = tmp_path / "shot one.png"
    image.write_bytes(PNG)
    async with chat(up, tmp_path) as terminal:
        await terminal.until("A new session")
        terminal.paste("line\n" * 40)
        await terminal.until("+ pasted-1.txt", "1 attached")
        terminal.paste(f"'{image}'")
        await terminal.until("shot one.png", "2 attached")
        terminal.send("Look at them.")
        await terminal.until("+ pasted-1.txt", "+ shot one.png", "ready", gone="attached")


async def test_undo_redo_cost_explain_export_and_help(up: Stack, tmp_path: Path) -> None:
    async with chat(up, tmp_path) as terminal:
        await terminal.until("A new session")
        terminal.send("One")
        await terminal.until("You said: One", "ready")
        terminal.send("Two")
        await terminal.until("You said: Two", "ready")
        terminal.send("/undo")
        await terminal.until("Undone.", gone="You said: Two")
        terminal.send("/redo")
        await terminal.until("Everything is back.", "You said: Two")
        for command, expected in (
            ("/cost", "This session cost $"),
            ("/explain", "It rests: there is nothing to do."),
            ("/export out.jsonl", "Exported to"),
            ("/agent plan", "The agent is plan now."),
            ("/undoo", "did you mean /undo?"),
        ):
            terminal.send(command)
            await terminal.until(expected)
            terminal.type(CTRL_C)
            await asyncio.sleep(2.5)
        assert (tmp_path / "out.jsonl").stat().st_size > 1000
        terminal.send("/help")
        keep("help", await terminal.until("Commands and keys", "/undo"))


async def test_a_sub_agent_shows_its_work_and_opens(up: Stack, tmp_path: Path) -> None:
    words = " ".join(f"word{number}" for number in range(60))
    task = f'{{"agent":"explore","description":"Look around","prompt":"{words}"}}'
    async with chat(up, tmp_path, "--model", "sim/slow") as terminal:
        await terminal.until("A new session")
        terminal.send(f"Go. [[sim: tool=task args='{task}' ; answer='It looked.']]")
        await terminal.until("● task Look around", "│ You said: word0 word1 word2")
        terminal.type(TAB)
        await terminal.until("o opens a sub-agent")
        terminal.type("o")
        await terminal.until("sub-agent: Esc returns", "  You said: word0 word1 word2")
        terminal.type(ESCAPE)
        await terminal.until("✓ task Look around", "It looked.", "ready")


async def test_what_a_sub_agent_asks_is_asked_and_answered_in_the_session_above(
    up: Stack, tmp_path: Path
) -> None:
    session = await slow_session(up)
    async with chat(up, tmp_path, "--resume", session, size=(80, 24)) as terminal:
        await terminal.until("ready")
        terminal.send(task_prompt())
        await ask_from_below(up, session, "rm below")
        asked = await terminal.until("The sub-agent general wants to run", "Esc interrupts")
        keep("sub-agent-asks", asked[asked.index("───") :])
        terminal.type("1")
        await terminal.until("task work", "working", gone="wants to run")
        await up.client.interrupt(session)


async def test_a_token_that_expires_is_said_and_a_new_one_goes_on(
    up: Stack, fairlead: AsyncFairlead, tmp_path: Path
) -> None:
    session = (await fairlead.create(directory=str(tmp_path))).id
    await fairlead.ask(session, "Hello")
    token = tmp_path / "token"
    first, second = make_key(up), make_key(up)
    token.write_text(first)
    options = ["--resume", session, "--token-file", str(token), "--http", up.up.http]
    async with chat(up, tmp_path, *options) as terminal:
        await terminal.until("You said: Hello", "ready")
        token_command(up, "revoke", first.split("_")[1])
        up.up.kill("gateway", 0, signal.SIGKILL)
        keep("token-expired", await terminal.until("The server refuses the token"))
        token.write_text(second)
        await terminal.until("ready", gone="reconnecting")
        terminal.send("Again")
        await terminal.until("You said: Again", "ready")


async def test_a_long_transcript_is_quick(
    up: Stack, fairlead: AsyncFairlead, tmp_path: Path
) -> None:
    """10,000 lines: the end is there at once, and a page up is there at once."""
    session = (await fairlead.create(directory=str(tmp_path))).id
    lines = "\n\n".join(f"Line {number} of an answer" for number in range(250))
    for number in range(20):
        await fairlead.ask(session, f"Part {number} [[sim: answer='{lines}']]")
    async with chat(up, tmp_path, "--resume", session) as terminal:
        await terminal.until("Line 249 of an answer", "ready")
        for _ in range(10):
            terminal.type(PAGE_UP)
        await terminal.until("Line 128 of an answer")
        terminal.type("still quick")
        await terminal.until("│ still quick")


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        (["--http", "http://127.0.0.1:9"], 3, "nothing answers at http://127.0.0.1:9"),
        (["--http", "127.0.0.1:9"], 2, "write it as http://"),
        (["--resume", "ses_nothing"], 4, "`fairlead sessions` lists those that exist"),
        (["--token", "flk_bad"], 5, "name a key with --token"),
        (["--model", "sim/none"], 1, "there is no model sim/none"),
    ],
)
async def test_what_cannot_start_says_why_in_one_line(
    up: Stack, tmp_path: Path, options: list[str], code: int, sentence: str
) -> None:
    async with chat(up, tmp_path, *options) as terminal:
        assert await terminal.until_exit() == code
        assert terminal.text.startswith("fairlead: ")
        assert "".join(sentence.split()) in "".join(terminal.text.split())
