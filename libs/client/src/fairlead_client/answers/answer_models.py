"""Reads answers as models. What does not fit its model comes from a server of another release."""

from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from fairlead_client.errors import MalformedAnswer

OTHER_RELEASE: Final = "The server is of another release: upgrade it, or fairlead-client"

Value = TypeVar("Value", bound=BaseModel)


def data_of(answer: object) -> Any:  # noqa: ANN401 - any JSON
    """What an answer holds. Raises MalformedAnswer."""
    if not isinstance(answer, dict) or "data" not in answer:
        raise MalformedAnswer("the answer", "it has no data")
    return answer["data"]


def dict_of(data: object) -> dict[str, Any]:
    """The data of an answer that is an object. Raises MalformedAnswer."""
    if not isinstance(data, dict):
        raise MalformedAnswer("the answer", "its data is no object")
    return data


def field_of(data: object, name: str) -> Any:  # noqa: ANN401 - any JSON
    """A field of the data of an answer. Raises MalformedAnswer."""
    fields = dict_of(data)
    if name not in fields:
        raise MalformedAnswer("the answer", f"it has no {name}")
    return fields[name]


def list_of(answer: object) -> list[Any]:
    """The list that an answer holds. Raises MalformedAnswer."""
    data = data_of(answer)
    if not isinstance(data, list):
        raise MalformedAnswer("the answer", "its data is no list")
    return data


def read_as(model: type[Value], data: object) -> Value:
    """A part of an answer as a model. Raises MalformedAnswer."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        reason = f"{' '.join(str(error).split())}. {OTHER_RELEASE}"
        raise MalformedAnswer(f"a {model.__name__}", reason) from error


def read_each(model: type[Value], items: object) -> list[Value]:
    """A list in an answer as models. Raises MalformedAnswer."""
    if not isinstance(items, list):
        raise MalformedAnswer(f"a list of {model.__name__}", "it is no list")
    return [read_as(model, item) for item in items]
