"""`literal`: what a snippet prints, written as a person might."""

from __future__ import annotations

from tests.fair import Case

CASES = [
    Case(
        verifier="literal",
        params={"value": "[1, 2.5, 'a']"},
        reference="[1, 2.5, 'a']",
        right=("[1,2.5,'a']", '[1, 2.5, "a"]', "[ 1, 2.50, 'a' ]", "[1, 2.5, 'a',]", "`[1, 2.5, 'a']`", "```python\n[1, 2.5, 'a']\n```"),
        wrong=("(1, 2.5, 'a')", "[1.0, 2.5, 'a']", "[True, 2.5, 'a']", "[1, 2.5, a]", "[1, 2.5]", "[1, 5/2, 'a']", "[0x1, 2.5, 'a']",
               "[1, 2.5, 'a'] or []", "list([1, 2.5, 'a'])", "[1, 2.5, b'a']", "[1, 2.5, 'A']", "[2.5, 1, 'a']"),
    ),
    Case(
        verifier="literal",
        params={"value": "{'b': (1,), 'a': None}"},
        reference="{'b': (1,), 'a': None}",
        right=("{'a': None, 'b': (1,)}", '{"b":(1,),"a":None}'),
        wrong=("{'b': 1, 'a': None}", "{'b': [1], 'a': None}", "{'b': (1,)}", "{'b': (1,), 'a': null}", "{'b': (1,), 'a': 'None'}"),
    ),
    Case(
        verifier="literal",
        params={"value": "hello world"},
        reference="hello world",
        right=(" hello world\n", "```\nhello world\n```", "`hello world`"),
        wrong=("Hello world", "hello  world", "'hello world'", "hello world.", "print: hello world", "hello\u00a0world"),
    ),
    Case(
        verifier="literal",
        params={"value": "True"},
        reference="True",
        right=(" True ", "`True`"),
        wrong=("true", "1", "'True'", "not False", "True or False"),
    ),
]  # fmt: skip
