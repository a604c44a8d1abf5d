"""The JSON API as an OpenAPI document, made from the table of its operations."""

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from starlette.responses import Response

from backstory.render.object_schemas import JsonSchema
from backstory.render.objects import to_json
from backstory.version import __version__
from backstory.web.api import OPERATIONS, PREFIX, Operation, Parameter

if TYPE_CHECKING:
    from starlette.requests import Request

_IN_PATH = re.compile(r"\{(\w+)\}")
_ERROR: JsonSchema = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {
                "code": {"type": "string"},
                "message": {"type": "string"},
                "hint": {"type": ["string", "null"]},
            },
            "required": ["code", "message", "hint"],
        }
    },
    "required": ["error"],
}


async def show_document(request: "Request") -> Response:
    document = build_document(request.url.port or 80)
    return Response(to_json(document), media_type="application/json")


def build_document(port: int) -> dict[str, object]:
    """The description of the API at a port, for programs."""
    paths: dict[str, dict[str, object]] = {}
    for operation in OPERATIONS:
        described = _describe(operation)
        paths.setdefault(operation.path, {})[operation.method.lower()] = described
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Backstory",
            "version": __version__,
            "summary": "Search, read and edit the memory of the agents on a machine.",
        },
        "servers": [{"url": f"http://127.0.0.1:{port}{PREFIX}"}],
        "security": [{"cookie": []}],
        "paths": paths,
        "components": {
            "schemas": {"Error": _ERROR},
            "securitySchemes": {
                "cookie": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": f"backstory-{port}",
                    "description": "Given for the link that 'backstory web' prints.",
                }
            },
        },
    }


def _describe(operation: Operation) -> dict[str, object]:
    described: dict[str, object] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "responses": {
            "200": {
                "description": "Done",
                "content": _as_json(operation.returns),
            },
            "default": {
                "description": "It could not be done",
                "content": _as_json({"$ref": "#/components/schemas/Error"}),
            },
        },
    }
    parameters = [
        *(
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in _IN_PATH.findall(operation.path)
        ),
        *(_describe_parameter(each) for each in operation.parameters),
    ]
    if parameters:
        described["parameters"] = parameters
    if operation.body:
        described["requestBody"] = {
            "required": True,
            "content": _as_json(_to_schema(operation.body)),
        }
    return described


def _describe_parameter(parameter: Parameter) -> dict[str, object]:
    return {
        "name": parameter.name,
        "in": "query",
        "description": parameter.summary,
        "required": parameter.is_required,
        "schema": parameter.schema,
    }


def _to_schema(body: Iterable[Parameter]) -> JsonSchema:
    listed = list(body)
    return {
        "type": "object",
        "properties": {
            each.name: {**each.schema, "description": each.summary} for each in listed
        },
        "required": [each.name for each in listed if each.is_required],
        "additionalProperties": False,
    }


def _as_json(schema: JsonSchema) -> Mapping[str, object]:
    return {"application/json": {"schema": schema}}
