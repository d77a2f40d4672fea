"""``/docs``: the API as a page, written from its OpenAPI description.

Plain HTML without scripts: it loads nothing but its own style sheet, and it is there even where
the page is not built.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any

STYLE = Path(__file__).with_name("docs.css")

Json = Mapping[str, Any]

_CODE = re.compile(r"`([^`]+)`")


def docs_html(description: Json, base: str) -> str:
    """The whole page. ``base`` is the server's address, for the examples."""
    info = description["info"]
    operations = list(_operations(description))
    links = "".join(
        f'<li><a href="#{_anchor(method, path)}"><b>{method}</b> {escape(path)}</a></li>'
        for method, path, _ in operations
    )
    body = "".join(_operation(description, base, *operation) for operation in operations)
    schemas = "".join(
        _schema(name, schema) for name, schema in sorted(_schemas(description).items())
    )
    title = escape(f"{info['title']} {info['version']}")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{title}: API</title><link rel="icon" href="data:,">'
        '<link rel="stylesheet" href="docs.css"></head><body>'
        f"<header><h1>{escape(info['title'])} <small>API {escape(info['version'])}</small></h1>"
        f"<p>{_text(info.get('description', ''))}</p>"
        '<p><a href="./">The translator</a> · <a href="openapi.json">OpenAPI description</a></p>'
        f'</header><nav aria-label="Endpoints"><ul>{links}</ul></nav><main>{body}'
        f'<section><h2 id="types">Types</h2>{schemas}</section></main></body></html>\n'
    )


def _operations(description: Json) -> Iterator[tuple[str, str, Json]]:
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def _schemas(description: Json) -> Json:
    found: Json = description.get("components", {}).get("schemas", {})
    return found


def _operation(description: Json, base: str, method: str, path: str, operation: Json) -> str:
    anchor = _anchor(method, path)
    body = operation.get("requestBody", {}).get("content", {})
    kinds = ", ".join(f"<code>{escape(kind)}</code>" for kind in body)
    model = next((_name_of(content["schema"]) for content in body.values()), "")
    takes = ""
    if model:
        about = f"<p>Takes {_link(model)} as {kinds}. What is marked ? may be left out.</p>"
        takes = about + _fields(description, model)
    parameters = _table(
        (parameter["name"], _type(parameter["schema"]), parameter.get("description", ""))
        for parameter in operation.get("parameters", [])
    )
    answers = _table(
        (status, _answer_type(answer), answer.get("description", ""))
        for status, answer in operation["responses"].items()
    )
    example = _example(base, method, path, _schemas(description).get(model))
    return (
        f'<section aria-labelledby="{anchor}">'
        f'<h2 id="{anchor}"><b>{method}</b> <code>{escape(path)}</code></h2>'
        f"<p><strong>{_text(operation.get('summary', ''))}.</strong> "
        f"{_text(operation.get('description', ''))}</p>{takes}{parameters}"
        f"<h3>Answers</h3>{answers}"
        f"<h3>Example</h3><pre tabindex=0>{escape(example)}</pre></section>"
    )


def _example(base: str, method: str, path: str, schema: Json | None) -> str:
    address = f"{base.rstrip('/')}{path}"
    if method == "GET" or schema is None:
        return f"curl {address}"
    values: dict[str, Any] = {}
    for name in schema.get("required", []):
        values[name] = {"target": "de"}.get(name, "The animal is too tired.")
    if "source" in schema["properties"]:
        values["source"] = "auto"
    return (
        f"curl {address} \\\n  -H 'Content-Type: application/json' \\\n  -d '{json.dumps(values)}'"
    )


def _fields(description: Json, model: str) -> str:
    schema = _schemas(description).get(model, {})
    required = schema.get("required", [])
    return _table(
        (
            name + ("" if name in required else " ?"),
            _type(field),
            field.get("description", "") + _default(field, name in required),
        )
        for name, field in schema.get("properties", {}).items()
    )


def _schema(name: str, schema: Json) -> str:
    about = schema.get("description", "")
    rows = _table(
        (field, _type(value), value.get("description", ""))
        for field, value in schema.get("properties", {}).items()
    )
    return f'<h3 id="type-{escape(name)}">{escape(name)}</h3><p>{_text(about)}</p>{rows}'


def _default(field: Json, required: bool) -> str:
    default = field.get("default")
    if required or default is None:
        return ""
    return f" Default: `{json.dumps(default)}`."


def _table(rows: Iterator[tuple[str, str, str]]) -> str:
    cells = "".join(
        f"<tr><th scope=row><code>{escape(name)}</code></th>"
        f"<td>{kind}</td><td>{_text(text)}</td></tr>"
        for name, kind, text in rows
    )
    return f"<div class=table tabindex=0><table>{cells}</table></div>" if cells else ""


def _type(schema: Json) -> str:
    """A schema in a few words, with links to named types. HTML."""
    if name := _name_of(schema):
        return _link(name)
    if "anyOf" in schema:
        parts = [_type(part) for part in schema["anyOf"] if part.get("type") != "null"]
        return " or ".join(parts)
    if "enum" in schema:
        return " or ".join(f"<code>{escape(json.dumps(value))}</code>" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    bounds = [
        f"{sign} {schema[key]:,}"
        for key, sign in (
            ("minimum", "≥"),
            ("exclusiveMinimum", "&gt;"),
            ("maximum", "≤"),
            ("exclusiveMaximum", "&lt;"),
        )
        if key in schema and abs(schema[key]) < 1e15
    ]
    return " ".join([escape(str(schema.get("type", "anything"))), ", ".join(bounds)]).strip()


def _answer_type(answer: Json) -> str:
    found = [
        _type(content["schema"]) if content.get("schema") else f"<code>{escape(kind)}</code>"
        for kind, content in answer.get("content", {}).items()
    ]
    return ", ".join(found)


def _name_of(schema: Json) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]


def _link(name: str) -> str:
    return f'<a href="#type-{escape(name)}">{escape(name)}</a>'


def _anchor(method: str, path: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", f"{method} {path}".lower()).strip("-")


def _text(text: str) -> str:
    """Plain words, with `code` marked."""
    return _CODE.sub(r"<code>\1</code>", escape(" ".join(text.split())))
