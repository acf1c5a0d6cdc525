"""What the `mathematics` verifier runs in a limited process of its own: reading notation and deciding equality.

client.py    asks; starts the process, restarts it when it died           (light: no sympy)
server.py    the process: warm, forks for every question, under limits
judge.py     one question: is the answer what was expected, as the kind of thing that was asked for
notation.py  plain text, Unicode and dialects of LaTeX -> one dialect
shapes.py    sets, tuples, matrices, intervals and chains -> their parts
reading.py   one part -> sympy, with math-verify's parser
equality.py  are two expressions the same function of their variables
form.py      is an expression worked out, factored, expanded
"""
