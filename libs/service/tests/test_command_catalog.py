"""Commands and references: what the configuration accepts, and what clients may list."""

from pathlib import Path

import pytest

from fairlead_schema.commands.location_catalog import SkillInfo
from fairlead_service.config.command_catalog import list_commands, list_references
from fairlead_service.config.configuration import Config, ConfigError, load

COMMANDS = """
[provider.acme]
protocol = "openai-chat"
base_url = "http://127.0.0.1:1"
[provider.acme.model.fast]
context = 1000
output = 100
[command.review]
template = "Review $1"
description = "Reviews a file"
agent = "plan"
model = "acme/fast"
[reference.handbook]
path = "/srv/handbook"
description = "How we release"
[reference.motto]
text = "Measure twice."
"""


def read(tmp_path: Path, text: str) -> Config:
    file = tmp_path / "fairlead.toml"
    file.write_text(text)
    return load(file, {})


def test_commands_of_the_configuration_and_slash_skills_are_listed_by_name(tmp_path: Path) -> None:
    config = read(tmp_path, COMMANDS)
    skills = (
        SkillInfo(name="deploy", content="Deploy it", slash=True),
        SkillInfo(name="quiet", content="No command"),
        SkillInfo(name="review", content="hidden by the configuration", slash=True),
    )

    commands = list_commands(config, skills)

    assert [(command.name, command.template) for command in commands] == [
        ("deploy", "Deploy it"),
        ("review", "Review $1"),
    ]
    assert commands[1].agent == "plan"
    assert commands[1].model is not None
    assert commands[1].model.id == "fast"


def test_references_are_listed_without_their_texts(tmp_path: Path) -> None:
    handbook, motto = list_references(read(tmp_path, COMMANDS))

    assert (handbook.path, handbook.description) == ("/srv/handbook", "How we release")
    assert motto.wire() == {"name": "motto"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('[command.x]\ntemplate = "t"\nagent = "nobody"', "has no .agent. section"),
        (
            '[command.x]\ntemplate = "t"\nmodel = "acme/none"',
            "has no .provider.acme. section",
        ),
        ('[command."a b"]\ntemplate = "t"', "pattern"),
        ('[command.x]\ntemplate = ""', "at least 1 character"),
        ('[reference.x]\ndescription = "d"', "either a `path` or a `text`"),
        ('[reference.x]\npath = "/p"\ntext = "t"', "either a `path` or a `text`"),
    ],
)
def test_a_command_or_reference_that_cannot_work_is_refused_at_the_start(
    tmp_path: Path, text: str, why: str
) -> None:
    with pytest.raises(ConfigError, match=why):
        read(tmp_path, text)
