"""From the directories of the files that the real `read` tool read to the instructions that join."""

from pathlib import Path
from typing import Any

import pytest

from fairlead_schema.context import ObserveContext, ObservedSource
from fairlead_schema.events import (
    SessionCreated,
    SessionEvent,
    ToolCalled,
    ToolFailed,
    ToolSucceeded,
)
from fairlead_schema.location import LocationRef
from fairlead_schema.record import Draft, record
from fairlead_schema.tools.content import ErrorInfo, Executor, managed_path
from fairlead_service.config.configuration import Config
from fairlead_session.calls.lifecycle import Succeeded
from fairlead_session.fold.evolve import evolve
from fairlead_session.state.session import Session
from fairlead_tools.builtin import read
from fairlead_tools.context.observe import Observer
from fairlead_tools.context.sources import instructions
from services.tools.tests.file_calls import try_call

MARK = "Mind the API."
CALL: dict[str, Any] = {"assistant_message_id": "msg_a", "call_id": "call_a"}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A location behind a link, with instructions in a directory below."""
    real = tmp_path / "real"
    (real / "api" / "v1").mkdir(parents=True)
    (real / "api" / "AGENTS.md").write_text(MARK)
    (real / "api" / "x.py").write_text("x")
    (real / "api" / "v1" / "y.py").write_text("y")
    (real / "top.py").write_text("top")
    (real / "alias").symlink_to("api")
    link = tmp_path / "link"
    link.symlink_to(real)
    return link


def fold_call(place: Path, path: str, settlement: SessionEvent) -> Session:
    """The session folded from its log after one call of the tool."""
    creation = SessionCreated(title="t", project_id="p", location=LocationRef(directory=str(place)))
    call = ToolCalled(tool="read", input={"path": path}, provider=Executor(), **CALL)
    events = (creation, call, settlement)
    session = Session(id="ses_1")
    drafts = tuple(Draft(f"evt_{at}", 1, event) for at, event in enumerate(events))
    for recorded_event in record(drafts, after=0):
        session = evolve(session, recorded_event)
    return session


async def after_reading(place: Path, path: str) -> Session:
    """The session after the real tool read a path or failed."""
    result = await try_call(read.tool(), place, path=path)
    if isinstance(result, Succeeded):
        return fold_call(place, path, tool_succeeded(dict(result.structured)))
    error = ErrorInfo(message=result.message)
    return fold_call(place, path, ToolFailed(error=error, provider=Executor(), **CALL))


def tool_succeeded(output: dict[str, Any]) -> ToolSucceeded:
    return ToolSucceeded(structured=output, content=(), provider=Executor(), **CALL)


async def has_joined(place: Path, session: Session) -> bool:
    context = {"global_file": None}
    observer = Observer(
        Config.model_validate(
            {"context": context, "skills": {"config_directory": None}, "location": {"roots": ["/"]}}
        )
    )
    request = ObserveContext(
        location=LocationRef(directory=str(place)), read_directories=session.read_directories
    )
    observations = {
        observation.key: observation
        for observation in (await observer.observe(request)).observations
    }
    source = observations.get(instructions.KEY)
    return isinstance(source, ObservedSource) and MARK in source.baseline


@pytest.mark.parametrize(
    ("path", "applies"),
    [
        ("api/x.py", True),
        ("./api/../api/v1/y.py", True),
        ("{place}/api/x.py", True),
        ("{real}/api/x.py", True),
        ("alias/x.py", True),
        ("api", True),
        ("api/v1/", True),
        ("top.py", False),
        (".", False),
        ("api/missing.py", False),
    ],
)
async def test_instructions_join_where_the_real_tool_has_read(
    place: Path,
    path: str,
    applies: bool,  # noqa: FBT001
) -> None:
    """L-28, M-12: any path to the file counts, and a failed read touches no directory."""
    session = await after_reading(place, path.format(place=place, real=place.parent / "real"))

    assert await has_joined(place, session) is applies


def test_a_managed_output_touches_no_directory(place: Path) -> None:
    """L-28: a managed output is in no directory."""
    assert fold_call(place, managed_path("out_1"), tool_succeeded({})).read_directories == ()
