"""Inputs while a session runs: steers join, queued inputs wait, each is promoted once."""

from starlette.responses import Response

from fairlead_schema.events import PromptPromoted
from services.runner.tests.conftest import AT, World, admitted, text_reply


async def promoted_ids(world: World) -> list[str]:
    return [event.message_id for event in await world.events() if isinstance(event, PromptPromoted)]


async def test_a_steer_admitted_during_a_turn_gets_another_turn(world: World) -> None:
    """B-09: in the same drain, although the model had finished."""
    await world.write(admitted("msg_1", "one"))

    async def meanwhile() -> Response:
        await world.write(admitted("msg_2", "two"))
        return text_reply("first")

    world.provider.replies.append(meanwhile)

    await world.drain()

    assert world.provider.messages()[1:] == [
        ("user", "one"),
        ("assistant", "first"),
        ("user", "two"),
    ]
    assert (await world.types()).count("execution.claimed") == 1
    assert await promoted_ids(world) == ["msg_1", "msg_2"]


async def test_several_steers_of_one_turn_join_a_single_follow_up(world: World) -> None:
    """B-08: they coalesce, in order."""
    await world.write(admitted("msg_1"))

    async def meanwhile() -> Response:
        await world.write(admitted("msg_2", "two"))
        await world.write(admitted("msg_3", "three"))
        return text_reply("first")

    world.provider.replies.append(meanwhile)

    await world.drain()

    assert len(world.provider.requests) == 2
    assert world.provider.messages()[-2:] == [("user", "two"), ("user", "three")]


async def test_queued_inputs_are_answered_one_after_another(world: World) -> None:
    """B-11: each opens a turn of its own, first come first served."""
    for id_ in ("msg_1", "msg_2", "msg_3"):
        await world.write(admitted(id_, id_, "queue"))

    await world.drain()

    assert await promoted_ids(world) == ["msg_1", "msg_2", "msg_3"]
    lasts = [world.provider.messages(turn)[-1] for turn in range(3)]
    assert lasts == [("user", "msg_1"), ("user", "msg_2"), ("user", "msg_3")]


async def test_steers_go_before_queued_input_at_the_start_and_in_between(world: World) -> None:
    """B-12, B-13: a queued input waits for steers that came while another one ran."""
    await world.write(admitted("msg_q1", delivery="queue"), admitted("msg_q2", delivery="queue"))
    await world.write(admitted("msg_s1"))

    async def meanwhile() -> Response:
        await world.write(admitted("msg_s2"))
        return text_reply("working on q1")

    world.provider.replies.extend([text_reply("steered"), meanwhile])

    await world.drain()

    assert await promoted_ids(world) == ["msg_s1", "msg_q1", "msg_s2", "msg_q2"]
    assert len(world.provider.requests) == 4


async def test_a_wake_that_finds_nothing_writes_nothing(world: World) -> None:
    """B-16: no claim, no observation in the log, no provider call."""
    await world.drain()

    assert await world.types() == ["session.created"]
    assert world.provider.requests == []


async def test_a_second_wake_after_the_answer_writes_nothing(world: World) -> None:
    """B-16, C-05: answered input is not answered again."""
    await world.write(admitted("msg_1"))
    await world.drain()
    before = await world.types()

    await world.drain()

    assert await world.types() == before


async def test_a_wake_for_a_session_that_does_not_exist_is_dropped(world: World) -> None:
    """A-10: a wake is only a hint."""
    await world.log.erase(AT)

    await world.drain()

    assert await world.types() == []
    assert world.wakes == []
