"""How several projectors share the shards."""

import pytest

from fairlead_projector.shard_balance import ShardShare
from fairlead_schema.subjects import SHARDS


@pytest.mark.parametrize("projectors", range(1, 12))
def test_every_shard_finds_a_projector(projectors: int) -> None:
    share = ShardShare()

    share.divide(projectors)

    assert share.limit * projectors >= SHARDS


def test_a_lone_projector_leaves_half_to_a_second_one() -> None:
    share = ShardShare(shards=set(range(SHARDS)))

    share.divide(2)

    assert [shard for shard in range(SHARDS) if share.is_surplus(shard)] == [4, 5, 6, 7]
    assert not share.has_room()
