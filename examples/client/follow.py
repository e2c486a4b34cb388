"""Show an answer as it comes. The place in the log survives this program: follow(after=seq) goes on."""

import asyncio

from fairlead_client import AsyncFairlead


async def main() -> None:
    """Print the fragments of one answer, and then where the log stands."""
    async with AsyncFairlead() as fairlead:
        session = await fairlead.create()
        receipt = await fairlead.prompt(session, "[[sim: chunks=5]]")
        async for event in fairlead.follow(session, after=receipt.admitted_seq):
            if event.type == "text.delta":
                print(event.data["delta"], end="", flush=True)
            if event.type == "step.ended":
                print(f"\nended at {event.seq}")
                break


asyncio.run(main())
