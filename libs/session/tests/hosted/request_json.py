"""Looks into the JSON of a request."""

from typing import Any


def has_object(tree: object, part: dict[str, Any]) -> bool:
    """Whether the tree has an object with all of these fields."""
    if isinstance(tree, dict):
        if all(tree.get(name) == value for name, value in part.items()):
            return True
        return any(has_object(value, part) for value in tree.values())
    return isinstance(tree, list) and any(has_object(item, part) for item in tree)


def shape(tree: object) -> object:
    """A JSON value without its texts. An image among the outputs of code may become a text."""
    if isinstance(tree, dict):
        return {name: shape(value) for name, value in tree.items() if name != "outputs"}
    if isinstance(tree, list):
        return [shape(item) for item in tree]
    return None


def calls_without_a_partner(tree: object) -> set[str]:
    """The ids that only a call or only a result has, in whatever protocol."""
    ids: list[str] = []

    def look(value: object) -> None:
        match value:
            case {"tool_use_id": str(id_)} | {"tool_call_id": str(id_)} | {"call_id": str(id_)}:
                ids.append(id_)
            case {"type": str(type_), "id": str(id_)} if type_.endswith("tool_use"):
                ids.append(id_)
            case {"type": "function", "id": str(id_)}:
                ids.append(id_)
            case {"functionCall": {"id": id_}} | {"functionResponse": {"id": id_}}:
                ids.append(str(id_))
                return  # The value of a result may name the call again.
            case _:
                pass
        for item in value.values() if isinstance(value, dict) else ():
            look(item)
        for item in value if isinstance(value, list) else ():
            look(item)

    look(tree)
    return {id_ for id_ in ids if ids.count(id_) % 2}
