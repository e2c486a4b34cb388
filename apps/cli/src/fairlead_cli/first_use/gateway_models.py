"""The models that a gateway offers, for those who do not run it."""

import argparse
from collections.abc import Iterator

from pydantic import BaseModel, ConfigDict, Field

from fairlead_cli.first_use.usable_model import UsableModel
from fairlead_cli.gateway import run_with_client
from fairlead_client.answers.answer_models import read_each
from fairlead_client.async_client.client import AsyncFairlead


class ModelPrice(BaseModel):
    """USD per million tokens."""

    input: float = 0
    output: float = 0


class ModelWindow(BaseModel):
    """The window, in tokens."""

    context: int = 0


class OfferedModel(BaseModel):
    """What a person chooses by, of a model in the form of the API."""

    model_config = ConfigDict(frozen=True)

    id: str
    provider_id: str = Field(alias="providerID")
    limit: ModelWindow = ModelWindow()
    cost: tuple[ModelPrice, ...] = ()

    @property
    def rates(self) -> ModelPrice:
        """The prices of a prompt of usual length."""
        return self.cost[0] if self.cost else ModelPrice()


def offered_models(args: argparse.Namespace) -> Iterator[UsableModel]:
    """Ask the gateway that the arguments name. Its file and its keys are on another machine.

    Raises CommandError.
    """

    async def load(client: AsyncFairlead) -> list[OfferedModel]:
        return read_each(OfferedModel, await client.models())

    for offered in run_with_client(args, load):
        label, rates = f"{offered.provider_id}/{offered.id}", offered.rates
        yield UsableModel(label, offered.limit.context, rates.input, rates.output, "gateway")
