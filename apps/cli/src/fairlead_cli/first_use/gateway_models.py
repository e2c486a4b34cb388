"""The models that a gateway offers, for those who do not run it."""

import argparse

from pydantic import BaseModel, ConfigDict, Field

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


def load_models(args: argparse.Namespace) -> list[OfferedModel]:
    """Ask the gateway that the arguments name. Raises CommandError."""

    async def load(client: AsyncFairlead) -> list[OfferedModel]:
        return read_each(OfferedModel, await client.models())

    return run_with_client(args, load)
