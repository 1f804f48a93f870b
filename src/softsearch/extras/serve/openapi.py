"""The OpenAPI document of this server: requests within its limits, and API keys."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from softsearch.extras.serve.access import Service
from softsearch.extras.serve.admission import WORK
from softsearch.extras.serve.fields import describe


def document(app: FastAPI, service: Service) -> dict[str, Any]:
    """Returns FastAPI's document with the limits from the command line; built once."""
    if app.openapi_schema is None:
        found = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        for operation in (each for path in found["paths"].values() for each in path.values()):
            operation["summary"] = operation.pop("description").removesuffix(".")  # the route's docstring
        describe(found["components"]["schemas"])
        _set_limits(found["components"]["schemas"], service)
        _set_keys(found, asked=service.asks_for_keys)
        app.openapi_schema = found
    return app.openapi_schema


def _set_limits(schemas: dict[str, Any], service: Service) -> None:
    settings = service.settings
    sentences, characters = settings.max_sentences, settings.max_characters
    numbers = {"n_best": settings.max_beam, "beam": settings.max_beam, "alternatives": settings.max_beam - 1}
    numbers |= {"max_length": settings.max_length, "min_length": settings.max_length}
    for name in ("TranslateRequest", "StreamRequest", "ScoreRequest", "LibreRequest", "DetectRequest"):
        fields = schemas[name]["properties"]
        split = "paragraphs" in fields or "q" in fields  # the limit then counts sentences, not texts
        for field, schema in fields.items():
            if field in ("text", "q", "prefix", "src", "tgt"):
                _set_maximum(schema, "string", "maxLength", characters * (sentences if split else 1))
                _set_maximum(schema, "array", "maxItems", sentences)
            elif field in numbers:
                _set_maximum(schema, "integer", "maximum", numbers[field])
    for name in ("LibreRequest", "DetectRequest"):  # unknown fields are ignored
        schemas[name].pop("additionalProperties")


def _set_maximum(schema: dict[str, Any], kind: str, keyword: str, most: int) -> None:
    """Sets a limit wherever a field may have this type."""
    if schema.get("type") == kind:
        schema[keyword] = most
        schema.pop("exclusiveMaximum", None)
    for inner in (
        *schema.get("anyOf", ()),
        *schema.get("oneOf", ()),
        *([schema["items"]] if "items" in schema else ()),
    ):
        _set_maximum(inner, kind, keyword, most)


def _set_keys(found: dict[str, Any], *, asked: bool) -> None:
    for path in WORK:
        operation = found["paths"][path]["post"]
        if asked:
            operation["security"] = [{"key": []}]
        else:
            operation["responses"].pop("401", None)
    if asked:
        scheme = {"type": "http", "scheme": "bearer", "description": "a key of --api-keys"}
        found["components"]["securitySchemes"] = {"key": scheme}
