"""Prompts that name things: expanded before admission, once, all of it or nothing."""

import json
from typing import Any

import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import NoResponders
from fairlead_eventlog.memory.requests import MemoryRequests
from fairlead_ingest.command_context import CommandContext
from fairlead_ingest.settings import IngestSettings
from fairlead_ingest.verbs.input.pending import pending
from fairlead_ingest.verbs.input.prompt import prompt
from fairlead_ingest.verbs.input.skill import skill
from fairlead_schema import subjects
from fairlead_schema.commands.input import LoadSkill
from fairlead_schema.commands.location_catalog import (
    FoundPath,
    LookUpNames,
    NamesFound,
    SkillInfo,
)
from fairlead_schema.commands.session import SessionCommand
from fairlead_schema.errors import Conflict, InvalidRequest, PayloadTooLarge, ServiceUnavailable
from fairlead_schema.events import PromptAdmitted, PromptPromoted, ShellRequested
from fairlead_schema.record import LEVEL_NEWEST
from fairlead_service.config.configuration import Config
from services.ingest.tests.conftest import (
    CONFIG,
    append_events,
    create_session,
    events,
    prompt_command,
)

COMMANDS: dict[str, Any] = {
    "review": {"template": "Review $1 carefully", "agent": "plan", "model": "acme/slow"},
    "status": {"template": "What changed?\n!`git status $1`"},
    "loop": {"template": "/loop again"},
    "big": {"template": "$ARGUMENTS" * 100},
    "remove": {"template": "!`rm -rf build`"},
}
DENY_RM = {"action": "bash", "resource": "rm *", "effect": "deny"}
SKILLS = {
    "deploy": SkillInfo(name="deploy", content="Deploy $1 now.", slash=True),
    "quiet": SkillInfo(name="quiet", content="No command.", location="/s/quiet.md"),
}


class Place:
    """The tools service as ingest sees it: it knows some files and skills, and counts questions."""

    def __init__(self) -> None:
        self.files = {"a.py": "file:///work/a.py"}
        self.skills = dict(SKILLS)
        self.asked = 0

    async def answer(self, body: bytes) -> bytes:
        self.asked += 1
        question = LookUpNames.model_validate_json(body)
        paths = tuple(
            FoundPath(name=name, uri=self.files[name])
            for name in question.paths
            if name in self.files
        )
        found = NamesFound(paths=paths, skill=self.skills.get(question.skill or ""))
        return json.dumps({"data": found.wire()}).encode()


@pytest.fixture
def place() -> Place:
    return Place()


@pytest.fixture
async def context(eventlog: EventLog, place: Place) -> CommandContext:
    await eventlog.log._status.finalise(LEVEL_NEWEST)  # type: ignore[attr-defined]  # noqa: SLF001
    await eventlog.status.finalise(LEVEL_NEWEST)
    assert isinstance(eventlog.requests, MemoryRequests)
    eventlog.requests.answerers[subjects.look_up("default")] = place.answer
    values = {
        **CONFIG,
        "command": COMMANDS,
        "reference": {"motto": {"text": "Measure twice."}},
        "agent": {"build": {"permissions": [DENY_RM]}, "plan": {}},
    }
    context = CommandContext(eventlog, IngestSettings(Config.model_validate(values)))
    await create_session(context)
    return context


async def admitted(eventlog: EventLog) -> list[PromptAdmitted]:
    return [event for event in await events(eventlog) if isinstance(event, PromptAdmitted)]


async def test_a_command_is_admitted_as_its_template(
    context: CommandContext, eventlog: EventLog
) -> None:
    """P-22: the receipt has the expanded prompt, its source, and the command's agent and model."""
    receipt = await prompt(context, "default", prompt_command("/review @a.py", id="msg_1"))

    assert receipt.prompt.text == "Review @a.py carefully"
    assert receipt.prompt.agent == "plan"
    assert receipt.prompt.model is not None
    assert receipt.prompt.model.id == "slow"
    assert receipt.prompt.files is not None
    assert [file.uri for file in receipt.prompt.files] == ["file:///work/a.py"]
    source = receipt.prompt.source
    assert source is not None
    assert source.text == "/review @a.py"
    assert [event.prompt for event in await admitted(eventlog)] == [receipt.prompt]


async def test_an_exact_retry_gets_the_first_receipt_whatever_changed_since(
    context: CommandContext, eventlog: EventLog, place: Place
) -> None:
    """P-22: pending or promoted. The source decides what an exact retry is."""
    command = prompt_command("/deploy @a.py", id="msg_1")
    first = await prompt(context, "default", command)
    assert first.prompt.text == "Deploy @a.py now."
    place.files.clear()
    place.skills.clear()
    asked = place.asked

    again = await prompt(context, "default", command)
    promoted = PromptPromoted(message_id="msg_1", prompt=first.prompt, created=first.time_created)
    await append_events(eventlog, promoted)
    later = await prompt(context, "default", command)

    assert again == first
    assert later.prompt == first.prompt
    assert later.promoted_seq is not None
    assert place.asked == asked, "a retry reads nothing anew"
    with pytest.raises(Conflict):
        await prompt(context, "default", prompt_command("/deploy b.py", id="msg_1"))
    with pytest.raises(Conflict):
        await prompt(context, "default", prompt_command(first.prompt.text, id="msg_1"))


async def test_the_commands_of_a_template_are_requested_with_their_prompt(
    context: CommandContext, eventlog: EventLog
) -> None:
    """P-22: one commit. The prompt says where the output stands."""
    receipt = await prompt(context, "default", prompt_command("/status 'a b'", id="msg_1"))
    await prompt(context, "default", prompt_command("/status 'a b'", id="msg_1"))

    (shell,) = [event for event in await events(eventlog) if isinstance(event, ShellRequested)]
    assert (shell.command, shell.prompt_id, shell.agent) == ("git status 'a b'", "msg_1", "build")
    assert "`git status 'a b'` stands above" in receipt.prompt.text
    assert len(await admitted(eventlog)) == 1


@pytest.mark.parametrize(
    ("text", "error", "why"),
    [
        ("/loop x", InvalidRequest, "/loop leads to /loop"),
        ("/big " + "x" * 1000, PayloadTooLarge, "exceeds"),
        ("/remove", InvalidRequest, "may not run"),
    ],
)
async def test_what_cannot_be_expanded_leaves_no_trace(
    context: CommandContext, eventlog: EventLog, text: str, error: type[Exception], why: str
) -> None:
    """P-22: nothing is half applied; no command runs that a rule denies."""
    before = await events(eventlog)

    with pytest.raises(error, match=why):
        await prompt(context, "default", prompt_command(text, id="msg_1"))
    assert await events(eventlog) == before


async def test_plain_texts_ask_nobody_and_unknown_names_stay_text(
    context: CommandContext, place: Place
) -> None:
    plain = await prompt(context, "default", prompt_command("mail ann@example.org about a/b"))
    assert place.asked == 0
    assert plain.prompt.source is None
    word = await prompt(context, "default", prompt_command("/nothing with @dataclass"))
    assert (word.prompt.text, word.prompt.source) == ("/nothing with @dataclass", None)
    literal = prompt_command().model_copy(
        update={"prompt": prompt_command("/review x").prompt.model_copy(update={"expand": False})}
    )
    assert (await prompt(context, "default", literal)).prompt.text == "/review x"


async def test_mentions_of_agents_and_references_need_no_tools_service(
    context: CommandContext, eventlog: EventLog
) -> None:
    """P-24: ingest knows both from its configuration."""
    assert isinstance(eventlog.requests, MemoryRequests)
    eventlog.requests.answerers.clear()

    told = await prompt(context, "default", prompt_command("ask @explore about @motto", id="msg_1"))

    assert "`task` tool" in told.prompt.text
    assert "Measure twice." in told.prompt.text
    assert told.prompt.agents is not None
    with pytest.raises(NoResponders):
        await prompt(context, "default", prompt_command("read @a.py", id="msg_2"))
    assert len(await admitted(eventlog)) == 1
    inbox = await pending(context, "default", SessionCommand(session_id="ses_1"))
    assert inbox.inputs[0].prompt == told.prompt


async def test_a_skill_is_put_in_as_synthetic_text_once(
    context: CommandContext, eventlog: EventLog, place: Place
) -> None:
    """P-24: a skill that is missing or denied is refused."""
    command = LoadSkill(session_id="ses_1", id="msg_1", skill="quiet", resume=False)
    receipt = await skill(context, "default", command)
    place.skills.clear()
    again = await skill(context, "default", command)

    assert again == receipt
    assert receipt.prompt.synthetic
    assert receipt.prompt.text == "# Skill: quiet\n\nNo command.\n\nThis skill is at /s/quiet.md"
    assert len(await admitted(eventlog)) == 1
    with pytest.raises(InvalidRequest, match="Unable to load skill gone"):
        await skill(context, "default", LoadSkill(session_id="ses_1", skill="gone"))


async def test_synthetic_text_is_admitted_as_it_is(context: CommandContext) -> None:
    """P-24: no person typed it, so that nothing in it is a command."""
    said = prompt_command("/review x").prompt.model_copy(update={"synthetic": True})
    command = prompt_command(id="msg_1").model_copy(update={"prompt": said})

    receipt = await prompt(context, "default", command)
    assert (receipt.prompt.text, receipt.prompt.synthetic) == ("/review x", True)
    with_file = {"text": "x", "synthetic": True, "files": [{"uri": "file:///a"}]}
    refused = command.model_validate({"sessionID": "ses_1", "prompt": with_file})
    with pytest.raises(InvalidRequest, match="text alone"):
        await prompt(context, "default", refused)


async def test_before_the_level_is_finalised_texts_stay_as_they_are(eventlog: EventLog) -> None:
    """P-22: an older release could not tell the retry of an expanded prompt."""
    config = Config.model_validate({**CONFIG, "command": COMMANDS})
    early = CommandContext(eventlog, IngestSettings(config))
    await create_session(early)

    receipt = await prompt(early, "default", prompt_command("/review x", id="msg_1"))
    assert receipt.prompt.text == "/review x"
    with pytest.raises(ServiceUnavailable, match="--finalise"):
        await skill(early, "default", LoadSkill(session_id="ses_1", skill="quiet"))
