"""Ask for an object: the server repairs an answer that does not fit, and the client gives the object."""

from pydantic import BaseModel

from fairlead_client import Fairlead


class City(BaseModel):
    """What the model must answer."""

    name: str
    people: int


with Fairlead() as fairlead:
    city = fairlead.ask(fairlead.create(), "Describe a city.", schema=City)
    print(type(city).__name__, city.name, city.people)
