"""`json_schema`: the same document written in other ways, and documents that differ in one place."""

from __future__ import annotations

from tests.fair import Case

PERSON = {"name": "Zoë", "born": 1815, "height": 1.5, "tags": ["x", "y"], "alive": False, "spouse": None}
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "born": {"type": "integer"}, "tags": {"type": "array"}},
    "required": ["name", "born"],
}
GOOD = '{"name": "Zoë", "born": 1815, "height": 1.5, "tags": ["x", "y"], "alive": false, "spouse": null}'

CASES = [
    Case(
        verifier="json_schema",
        params={"expected": {"": PERSON}, "schema": SCHEMA},
        reference=GOOD,
        right=(
            GOOD.replace(" ", ""),
            f"```json\n{GOOD}\n```",
            f"\n\n  {GOOD}  \n",
            GOOD.replace(", ", ",\n\t"),
            '{"spouse": null, "alive": false, "tags": ["x", "y"], "height": 1.5, "born": 1815, "name": "Zoë"}',
            GOOD.replace("Zoë", "Zo\\u00eb"),
            GOOD.replace("Zoë", "Zoe\u0308"),
            GOOD.replace("1.5", "1.50"),
            GOOD.replace("1.5", "15e-1"),
            GOOD.replace("1815", "1815.0"),
            GOOD.replace("1815", "1.815e3"),
        ),
        wrong=(
            "{}",
            "[]",
            "null",
            f"[{GOOD}]",
            f"{GOOD}\n{GOOD}",
            f"Here it is: {GOOD}",
            f"{GOOD} // done",
            GOOD.replace('"born"', '/* year */ "born"'),
            GOOD.replace("}", ",}"),
            GOOD.replace('"', "'"),
            GOOD.replace("1815", '"1815"'),
            GOOD.replace("1815", "1816"),
            GOOD.replace("1815", "NaN"),
            GOOD.replace("1815", "01815"),
            GOOD.replace("1.5", "Infinity"),
            GOOD.replace("1.5", "1e999"),
            GOOD.replace("1.5", "1.5000001"),
            GOOD.replace("false", "0"),
            GOOD.replace("false", "False"),
            GOOD.replace("false", '"false"'),
            GOOD.replace("null", '""'),
            GOOD.replace('["x", "y"]', '["y", "x"]'),
            GOOD.replace('["x", "y"]', '["x"]'),
            GOOD.replace('["x", "y"]', '["x", "y", "y"]'),
            GOOD.replace('["x", "y"]', '"x, y"'),
            GOOD.replace("Zoë", "zoë"),
            GOOD.replace("Zoë", "Zoë "),
            GOOD.replace('"born"', '"Born"'),
            GOOD.replace("{", '{"born": 1, '),
            GOOD.replace("{", '{"name": "Zoë", '),
            GOOD.replace("{", '{"extra": 1, '),
            GOOD.replace(', "spouse": null', ""),
            GOOD[:-1],
        ),
    ),
    Case(
        verifier="json_schema",
        params={
            "expected": {"/total": 3, "/items": [{"id": 1}, {"id": 2}]},
            "schema": {
                "type": "object",
                "properties": {"total": {"type": "integer"}, "items": {"type": "array"}, "note": {"type": "string"}},
                "required": ["total", "items"],
                "additionalProperties": False,
            },
            "unordered": ["/items"],
        },
        reference='{"total": 3, "items": [{"id": 1}, {"id": 2}]}',
        right=(
            '{"items": [{"id": 2}, {"id": 1}], "total": 3}',
            '{"items": [{"id": 1}, {"id": 2.0}], "total": 3, "note": "free text"}',
        ),
        wrong=(
            '{"total": 3}',
            '{"total": 3, "items": []}',
            '{"total": 3, "items": [{"id": 1}, {"id": 1}]}',
            '{"total": 3, "items": [{"id": 1}, {"id": 2}, {"id": 3}]}',
            '{"total": 3, "items": [{"id": 1}, {"id": 2, "x": 1}]}',
            '{"total": true, "items": [{"id": 1}, {"id": 2}]}',
            '{"total": 3, "items": [{"id": 1}, {"id": 2}], "note": 7}',
            '{"total": 3, "items": [{"id": 1}, {"id": 2}], "other": 4}',
        ),
    ),
    Case(
        verifier="json_schema",
        params={"expected": {"": {"mean": 0.3333333}}, "relative": 1e-4},
        reference='{"mean": 0.33333}',
        right=('{"mean": 0.3333333333333333}', '{"mean": 33.3333e-2}'),
        wrong=('{"mean": 0.33}', '{"mean": "0.3333333"}', '{"mean": -0.3333333}', '{"mean": 1/3}'),
    ),
]
