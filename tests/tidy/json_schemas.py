"""Changes generated JSON Schemas into those of values on the wire."""

from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]

_HIDDEN = ("raised", "withdrawn", "generation")


def without_nulls(value: Any) -> Any:  # noqa: ANN401 - any part of a schema
    """A schema that allows no null, and whose discriminators are left to `const`.

    Fairlead leaves an absent key out. AsyncAPI knows a discriminator only as a name.
    """
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {
        key: without_nulls(item)
        for key, item in value.items()
        if key != "discriminator" or not isinstance(item, dict) or "propertyName" not in item
    }
    choices = kept.get("anyOf")
    if isinstance(choices, list) and {"type": "null"} in choices:
        rest = [choice for choice in choices if choice != {"type": "null"}]
        kept = {k: v for k, v in kept.items() if k not in {"anyOf", "default"}}
        kept |= rest[0] if len(rest) == 1 else {"anyOf": rest}
    return kept


def client_event_data(schema: Json, *, is_promotion: bool, request: Json | None) -> Json:
    """The schema of an event's data as clients read it. `public_events.py` has the same rules."""
    properties = dict(schema.get("properties", {}))
    required = list(schema.get("required", []))
    if request is not None:
        for name in ("request", "agent"):
            properties.pop(name, None)
        properties |= request["properties"]
        required += request.get("required", [])
    if is_promotion:
        properties.pop("created")
        properties["delivery"] = {"type": "string", "enum": ["steer", "queue"]}
        required.append("delivery")
    for name in _HIDDEN:
        properties.pop(name, None)
    properties = {
        "timestamp": {"type": "integer", "description": "Milliseconds of the epoch."},
        "sessionID": {"type": "string"},
        **properties,
    }
    names = ["timestamp", "sessionID", *(name for name in required if name in properties)]
    return {**schema, "properties": properties, "required": list(dict.fromkeys(names))}
