"""The server keeps what its own OpenAPI document promises, whatever a client sends."""

import re
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import Case, checks

from softsearch.extras.serve.schema import REQUESTS, LibreRequest, TranslateRequest
from tests.support.serving import Served

OPERATIONS = {  # and how many requests are tried
    ("POST", "/translate"): 150,
    ("POST", "/translate/stream"): 80,
    ("POST", "/score"): 60,
    ("POST", "/detect"): 40,
    ("POST", "/translate_file"): 60,
    ("GET", "/download_file/{name}"): 20,
    ("GET", "/models"): 1,
    ("GET", "/languages"): 1,
    ("GET", "/frontend/settings"): 1,
    ("GET", "/healthz"): 1,
    ("GET", "/readyz"): 1,
    ("GET", "/metrics"): 1,
}
UNGUESSED = {"/translate_file": 422, "/download_file/{name}": 404}  # names of files that there are
CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]


@pytest.fixture(scope="module")
def api(served: Served) -> Any:
    return schemathesis.openapi.from_url(f"{served.url}/openapi.json")


def test_the_document_has_all_operations(api: Any) -> None:
    found = {(result.ok().method.upper(), result.ok().path) for result in api.get_all_operations()}
    assert found == OPERATIONS.keys()


def test_every_field_has_a_sentence_and_requests_have_values_that_fit(api: Any) -> None:
    schemas = api.raw_schema["components"]["schemas"]
    fields = {f"{title}.{name}": field for title, each in schemas.items() for name, field in each["properties"].items()}
    assert len(fields) > 100
    assert not [name for name, field in fields.items() if not re.match(r"[A-Z\".l].* .*\.$", field["description"])]
    for model in (*REQUESTS.values(), TranslateRequest, LibreRequest):
        given = {
            name: field.get("examples", [None])[0] for name, field in schemas[model.__name__]["properties"].items()
        }
        assert model.model_validate(given).model_dump() == given


@pytest.mark.day
@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_no_request_breaks_the_server(method: str, path: str, api: Any) -> None:
    """Fault: random requests, made from the OpenAPI document. Effect: only the answers that the document promises."""
    operation, statuses = api[path][method], set()
    valid, invalid = (
        operation.as_strategy(),
        operation.as_strategy(generation_mode=schemathesis.GenerationMode.NEGATIVE),
    )

    @settings(max_examples=OPERATIONS[method, path], suppress_health_check=list(HealthCheck))
    @given(case=valid | invalid if method == "POST" else valid)
    def ask(case: Case) -> None:
        statuses.add(case.call_and_validate(checks=CHECKS).status_code)

    ask()
    assert UNGUESSED.get(path, 200) in statuses
    if method == "POST":
        assert 422 in statuses
