"""Prints the page of endpoints, from the OpenAPI description: python docs/endpoints.py"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from dragoman.server.app import create_app
from dragoman.serving.operate.settings import ServeSettings
from dragoman.serving.service.catalogue import LanguageDetector
from dragoman.tasks.program import serving_tasks

Json = Mapping[str, Any]

_HEAD = """\
# Endpoints

Every path of the server, with its requests and answers. They have all fields that are marked
`required`, and may lack the others. A running server shows the same at `/docs`, and the OpenAPI
description at `/openapi.json`. [Call the API](http-api.md) has examples, and lists all errors.
"""

_PAGES = """\
## pages

These paths are for browsers: `/` is the page, `/assets/{name}` its files, `/docs` the API as a page
and `/docs.css` its style.
"""


def endpoints_page() -> str:
    """Return the whole page as Markdown."""
    description = description_of_server()
    page = _HEAD
    for tag in description["tags"]:
        page += f"\n## {tag['name']}\n\n{tag['description']}\n"
        page += "".join(
            _operation(*one) for one in operations(description) if tag["name"] in one[2]["tags"]
        )
    types = sorted(description["components"]["schemas"].items())
    return page + f"\n{_PAGES}\n## Types\n" + "".join(_type(name, one) for name, one in types)


def description_of_server() -> Json:
    """Return the OpenAPI description of a server, which does not depend on its runs."""
    found: Json = create_app([], ServeSettings(), LanguageDetector(), serving_tasks()).openapi()
    return found


def operations(description: Json) -> Iterator[tuple[str, str, Json]]:
    """Yield the method, the path and the description of each operation."""
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, {"tags": ["dragoman"], **operation}


def _operation(method: str, path: str, operation: Json) -> str:
    page = f"\n### {method} {path}\n\n{operation['summary']}. {operation.get('description', '')}\n"
    for parameter in operation.get("parameters", ()):
        where, kind = parameter["in"], _kind(parameter["schema"])
        page += f"\nParameter `{parameter['name']}` ({where}): {kind}.\n"
    takes = operation.get("requestBody", {}).get("content", {})
    if takes:
        schema = next(iter(takes.values()))["schema"]
        forms = ["JSON" if kind == "application/json" else "a form" for kind in takes]
        page += f"\nTakes {_link(schema)}, as {' or '.join(dict.fromkeys(forms))}.\n"
        page += _fields(schema)
    for status, answer in operation["responses"].items():
        if status == "200":
            gives = answer.get("content", {})
            named = [_link(one["schema"]) for one in gives.values() if one.get("schema")]
            page += f"\nGives {' or '.join(named)}.\n" if any(named) else ""
    return page


def _type(name: str, schema: Json) -> str:
    return f"\n### {name}\n\n{_text(schema.get('description', ''))}\n{_fields(schema)}"


def _fields(schema: Json) -> str:
    """The table of the fields of a type; nothing for a type that has none, or is named."""
    if not schema.get("properties"):
        return ""
    page = "\n| field | type | default | what it is |\n|---|---|---|---|\n"
    needed = schema.get("required", ())
    # The key of a request comes last: it is that of the base class, which the schema has first.
    for field, about in sorted(schema["properties"].items(), key=lambda one: one[0] == "api_key"):
        default = "required" if field in needed else ""
        if "default" in about:
            default = f"`{json.dumps(about['default'], ensure_ascii=False)}`"
        words = _text(f"{about.get('description', '')} {_limits(about)}")
        page += f"| `{field}` | {_kind(about)} | {default} | {words} |\n"
    return page


def _limits(schema: Json) -> str:
    """The range of a number, and the greatest length of a text or a list."""
    found = []
    for one in (schema, *schema.get("anyOf", ())):
        low = one.get("minimum", 0)
        if "maximum" in one:
            found.append(f"From {low:,} to {one['maximum']:,}.")
        elif low:
            found.append(f"At least {low:,}.")
        for name, noun in (("maxLength", "characters"), ("maxItems", "items")):
            if name in one:
                found.append(f"At most {one[name]:,} {noun}.")
    return " ".join(found)


def _kind(schema: Json) -> str:
    if "$ref" in schema:
        return _link(schema)
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            kinds = [_kind(one) for one in schema[several] if one.get("type") != "null"]
            return " or ".join(dict.fromkeys(kinds))
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return " or ".join(f"`{json.dumps(one, ensure_ascii=False)}`" for one in values)
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    if schema.get("type") == "object":
        return (
            f"object of {_kind(schema['additionalProperties'])}"
            if isinstance(schema.get("additionalProperties"), dict)
            else "object"
        )
    return str(schema.get("type", "anything"))


def _link(schema: Json) -> str:
    if "$ref" not in schema:
        return _kind(schema)
    name = schema["$ref"].rpartition("/")[2]
    return f"[{name}](#{name.lower()})"


def _text(text: str) -> str:
    return " ".join(text.replace("``", "`").split()).replace("|", "\\|")


if __name__ == "__main__":
    print(endpoints_page(), end="")
