# SPDX-License-Identifier: Apache-2.0
"""The part of JSON Schema that docs/schema uses.

These are type, const, enum, minimum, maximum, properties, required, additionalProperties, items, oneOf, anyOf and $ref
into $defs. A schema with any other word is refused, so that nothing in it goes unread.
"""

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


KNOWN = {"$schema", "$defs", "$ref", "title", "description", "type", "const", "enum", "minimum", "maximum",
         "properties", "required", "additionalProperties", "items", "oneOf", "anyOf"}


def _is(value, name):
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def errors(value, schema, root=None, where="$"):
    """Sentences that say where `value` is not as the schema wants it."""
    root = root or schema
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rsplit("/", 1)[1]]
    unread = set(schema) - KNOWN
    assert not unread, f"the schema of {where} has {unread}, which this validator does not know"
    found = []
    names = schema.get("type")
    if names is not None and not any(_is(value, n) for n in ([names] if isinstance(names, str) else names)):
        return [f"{where} is {value!r}, not {names}"]
    if "const" in schema and value != schema["const"]:
        found.append(f"{where} is {value!r}, not {schema['const']!r}")
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{where} is {value!r}, not one of {schema['enum']}")
    for word, most in (("oneOf", 1), ("anyOf", len(schema.get("anyOf", [])))):
        if word in schema:
            fits = sum(not errors(value, part, root, where) for part in schema[word])
            if not 1 <= fits <= most:
                found.append(f"{where} fits {fits} of {word}: {str(value)[:200]}")
    if _is(value, "number"):
        if value < schema.get("minimum", value) or value > schema.get("maximum", value):
            found.append(f"{where} is {value!r}, out of its range")
    if isinstance(value, dict):
        found += [f"{where}.{name} is missing" for name in schema.get("required", []) if name not in value]
        parts = schema.get("properties", {})
        rest = schema.get("additionalProperties", True)
        for name, item in value.items():
            if name in parts:
                found += errors(item, parts[name], root, f"{where}.{name}")
            elif rest is False:
                found.append(f"{where}.{name} is not in the schema")
            elif rest is not True:
                found += errors(item, rest, root, f"{where}.{name}")
    if isinstance(value, list) and "items" in schema:
        for i, item in enumerate(value):
            found += errors(item, schema["items"], root, f"{where}[{i}]")
    return found
