"""Models, files, own commands and undo over HTTP."""

from fairlead_client import AsyncFairlead
from fairlead_schema.errors import ServiceUnavailable
from libs.client.tests.conftest import ScriptedGateway, refuse, reply

SESSION = "/api/session/ses_a"


async def test_an_upload_is_repeated_because_its_content_names_it(gateway: ScriptedGateway) -> None:
    stored = {"uri": "fairlead-file:/fil_1", "mime": "image/png", "bytes": 4}
    gateway.script(
        f"{SESSION}/upload",
        b"",
        refuse(ServiceUnavailable("No ingest service answers now", service="ingest")),
        reply({"data": stored}),
    )
    async with AsyncFairlead(gateway.url, token="k") as fairlead:  # noqa: S106
        file = await fairlead.upload("ses_a", b"1234", name="a.png")

    asked = gateway.asked_for(f"{SESSION}/upload")
    assert file == stored
    assert len(asked) == 3
    assert asked[0].query == "name=a.png"
    assert asked[0].headers["content-type"] == "application/octet-stream"
    assert asked[0].headers["authorization"] == "bearer k"


async def test_a_command_of_a_person_is_repeated_under_one_id(gateway: ScriptedGateway) -> None:
    gateway.script(f"{SESSION}/shell", b"", reply({"data": {}}))
    async with AsyncFairlead(gateway.url) as fairlead:
        message_id = await fairlead.shell("ses_a", "make test")

    bodies = [asked.body for asked in gateway.asked_for(f"{SESSION}/shell")]
    assert bodies == [{"id": message_id, "command": "make test"}] * 2


async def test_files_are_found_below_the_directory_that_the_caller_names(
    gateway: ScriptedGateway,
) -> None:
    gateway.script("/api/fs/find", reply({"data": [{"path": "src/a.py", "type": "file"}]}))
    gateway.script("/api/fs/list", reply({"data": [{"path": "src", "type": "directory"}]}))
    async with AsyncFairlead(gateway.url) as fairlead:
        found = await fairlead.find_files("a", directory="/work")
        listed = await fairlead.list_files()

    assert (found, listed) == (["src/a.py"], [{"path": "src", "type": "directory"}])
    assert "location%5Bdirectory%5D=%2Fwork" in gateway.asked_for("/api/fs/find")[0].query


async def test_an_undo_is_staged_and_cleared(gateway: ScriptedGateway) -> None:
    gateway.script(f"{SESSION}/revert/stage", reply({"data": {"messageID": "msg_1"}}))
    gateway.script(f"{SESSION}/revert/clear", reply(b"", 204))
    gateway.script(f"{SESSION}/context", reply({"data": [{"id": "msg_1", "type": "user"}]}))
    async with AsyncFairlead(gateway.url) as fairlead:
        messages = await fairlead.active_messages("ses_a")
        state = await fairlead.stage_revert("ses_a", messages[0]["id"])
        await fairlead.clear_revert("ses_a")

    assert state.message_id == "msg_1"
    assert gateway.asked_for(f"{SESSION}/revert/stage")[0].body == {
        "messageID": "msg_1",
        "files": True,
    }


async def test_a_new_title_is_sent_until_somebody_answers(gateway: ScriptedGateway) -> None:
    gateway.script(SESSION, b"", reply({"data": {}}))
    async with AsyncFairlead(gateway.url) as fairlead:
        await fairlead.rename("ses_a", "Rates")

    assert [asked.body for asked in gateway.asked] == [{"title": "Rates"}] * 2
