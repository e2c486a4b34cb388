"""A stack whose nodes are in namespaces lives through a partition. Runs in namespaces of its own."""

import asyncio
import logging
import sys

from fairlead_testing.cluster_roles import find_leader, wait_until_whole
from fairlead_testing.stack import Stack
from tests.chaos.weather import Damage
from tests.integration.cluster.namespaces import NODES, cut, lay_links, mend, move_nodes
from tests.integration.cluster.survival import cluster_stack, survive

CUT_S = 12.0


async def isolate(up: Stack, damage: Damage) -> None:
    """The leader of a shard sees no other node; its clients still see it."""
    leader = await find_leader(up.up, "LOG-0")
    others = [node for node in range(NODES) if node != leader]
    await _part(up, damage, [(leader, other) for other in others], "leader cut off")


async def part_two(up: Stack, damage: Damage) -> None:
    """Two nodes do not see each other; the third sees both."""
    leader = await find_leader(up.up, "LOG-0")
    await _part(up, damage, [(leader, (leader + 1) % NODES)], "two nodes parted")


async def _part(up: Stack, damage: Damage, links: list[tuple[int, int]], kind: str) -> None:
    await asyncio.sleep(1.0)
    for link in links:
        cut(*link)
    damage.kinds[kind] += 1
    await asyncio.sleep(CUT_S)
    for link in links:
        mend(*link)
    await wait_until_whole(up.up)


async def main() -> None:
    lay_links()
    move_nodes()
    async with cluster_stack() as up:
        await survive(up, isolate, seed="isolate", seconds=14)
        await survive(up, part_two, seed="part", seconds=14)


if __name__ == "__main__":
    logging.getLogger().addHandler(logging.NullHandler())
    asyncio.run(main())
    sys.stdout.write("every promise held\n")
