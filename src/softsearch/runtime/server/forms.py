"""Bodies that are not JSON: forms, which some clients of LibreTranslate send."""

from typing import Any
from urllib.parse import parse_qsl

_MAX_FIELDS = 100


def read_form(body: Any) -> Any:
    """The fields of an url-encoded form by name, a name that comes twice as a list; JSON as it is.

    Raises:
        ValueError: the body is no form.
    """
    if not isinstance(body, bytes):
        return body
    try:
        pairs = parse_qsl(body.decode("ascii"), strict_parsing=True, errors="strict", max_num_fields=_MAX_FIELDS)
    except ValueError as error:
        raise ValueError(
            "the body is neither JSON nor a form; send JSON with content-type: application/json"
        ) from error
    fields: dict[str, Any] = {}
    for name, value in pairs:
        fields[name] = value if name not in fields else [*_as_list(fields[name]), value]
    return fields


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
