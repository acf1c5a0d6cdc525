"""`world`: other ways to the same state, and states that are nearly it."""

from __future__ import annotations

from typing import Any

from tests.fair import Case

TABLE = "CREATE TABLE stock(item TEXT PRIMARY KEY, amount INTEGER); INSERT INTO stock VALUES ('nut', 5), ('bolt', 8);"
FILES = {"stock.db": {"sqlite": TABLE}, "orders.csv": {"csv": [["item", "amount"], ["nut", 2], ["bolt", 3]]}}
STOCK: dict[str, Any] = {
    "files": {**FILES, "events.log": "opened\n"},
    "language": "python",
    "checks": [
        {
            "check": "sqlite",
            "path": "stock.db",
            "query": "SELECT item, amount FROM stock",
            "rows": [["nut", 3], ["bolt", 5]],
        },
        {"check": "log", "path": "events.log", "contains": ["shipped nut", "shipped bolt"], "exactly": True},
        {"check": "unchanged", "except": ["stock.db", "events.log"]},
    ],
}
SHIP = """import csv, sqlite3
db = sqlite3.connect("stock.db")
for row in csv.DictReader(open("orders.csv")):
    db.execute("UPDATE stock SET amount = amount - ? WHERE item = ?", (int(row["amount"]), row["item"]))
    with open("events.log", "a") as log:
        print("shipped", row["item"], file=log)
db.commit()
"""
CONFIG: dict[str, Any] = {
    "files": {"config.json": {"json": {"port": 80, "hosts": ["a", "b"]}}, "old.conf": "port=80\n", "src/app.py": "x = 1\n"},
    "language": "sh",
    "checks": [
        {"check": "json", "path": "config.json", "value": {"port": 8080, "hosts": ["a", "b"], "tls": True}},
        {"check": "absent", "path": "old.conf"},
        {"check": "tree", "path": "src", "files": {"app.py": "x = 1\n", "lib/util.py": "y = 2\n"}},
    ],
}  # fmt: skip
TIDY = """cat > config.json <<'END'
{"port": 8080, "hosts": ["a", "b"], "tls": true}
END
rm old.conf
mkdir src/lib
echo 'y = 2' > src/lib/util.py
"""
REPORT: dict[str, Any] = {
    "files": {"sales.csv": {"csv": [["city", "sum"], ["Oslo", 10.5], ["Rome", 7], ["Oslo", 2]]}},
    "language": "python",
    "checks": [
        {"check": "csv", "path": "totals.csv", "columns": ["city", "sum"], "rows": [["Oslo", 12.5], ["Rome", 7]]},
        {"check": "unchanged", "except": ["totals.csv"]},
    ],
}
TOTALS = "open('totals.csv', 'w').write('city,sum\\nOslo,12.5\\nRome,7\\n')"

CASES = [
    Case(
        verifier="world",
        params=STOCK,
        reference=SHIP,
        right=(
            "```python\n" + SHIP + "```",
            SHIP.replace("import csv", "import csv, os") + "db.close()\nos.chmod('stock.db', 0o600)",
            SHIP.replace("import csv", "import os, csv").replace(
                'db")', 'db")\ndb.execute("PRAGMA journal_mode = WAL")', 1
            )
            + "os._exit(0)",
            "import sqlite3\ndb = sqlite3.connect('stock.db')\ndb.executescript(\"DELETE FROM stock; INSERT INTO stock VALUES ('bolt', 5), ('nut', 3)\")\n"
            "open('events.log', 'a').write('shipped nut\\n\\nshipped bolt')",
            SHIP + "raise SystemExit('done, but with a bad exit code')",
            SHIP + "print('<done>' * 100000)",
        ),
        wrong=(
            SHIP.replace("db.commit()", ""),
            SHIP.replace("amount - ?", "amount + ?"),
            SHIP.replace('"a")', '"w")'),
            SHIP.replace('"shipped"', '"Shipped"'),
            SHIP + "open('events.log', 'a').write('shipped screw')",
            SHIP + "open('orders.csv', 'w')",
            SHIP + "import os; os.remove('orders.csv')",
            SHIP + "open('done.txt', 'w')",
            SHIP + "db.execute(\"INSERT INTO stock VALUES ('screw', 0)\"); db.commit()",
            SHIP.replace("int(row", "(row").replace('["amount"])', '["amount"] + ".5")'),
            "import sqlite3\ndb = sqlite3.connect('stock.db')\ndb.executescript(\"DROP TABLE stock; CREATE VIEW stock AS SELECT 'nut' item, 3 amount UNION SELECT 'bolt', 5\")\n"
            "open('events.log', 'a').write('shipped nut\\nshipped bolt')",
            "print('shipped nut')\nprint('shipped bolt')",
        ),
    ),
    Case(
        verifier="world",
        params=CONFIG,
        reference=TIDY,
        right=(
            TIDY.replace("rm old.conf", "mkdir -p attic; mv old.conf attic/old"),
            TIDY.replace("8080", "8080.0"),
            TIDY.replace('{"port": 8080, ', '{\n\t"port":8080,\r\n'),
            TIDY.replace(
                '"port": 8080, "hosts": ["a", "b"], "tls": true', '"tls": true, "hosts": ["a", "b"], "port": 8.08e3'
            ),
            TIDY.replace("echo", "printf %s"),
            TIDY + "mkdir src/empty",
            TIDY.replace("mkdir", "set -eu; umask 077; mkdir"),
        ),
        wrong=(
            TIDY.replace("8080", '"8080"'),
            TIDY.replace("true", "1"),
            TIDY.replace("true", "True"),
            TIDY.replace('["a", "b"]', '["b", "a"]'),
            TIDY.replace('"tls"', '"debug": false, "tls"'),
            TIDY.replace('"tls"', '"port": 80, "tls"'),
            TIDY.replace("rm old.conf", "ln -sf nowhere old.conf"),
            TIDY.replace("rm old.conf", ": > old.conf"),
            TIDY + "touch src/lib/__init__.py",
            TIDY.replace("echo 'y = 2'", "echo '  y = 2'"),
            TIDY + "ln -s lib/util.py src/link.py",
            TIDY.replace("END\nrm", ",\nEND\nrm", 1),
        ),
    ),
    Case(
        verifier="world",
        params=REPORT,
        reference=TOTALS,
        right=(
            "import csv, collections\nt = collections.Counter()\nfor r in csv.DictReader(open('sales.csv')): t[r['city']] += float(r['sum'])\n"
            "w = csv.writer(open('totals.csv', 'w', newline=''))\nw.writerow(['city', 'sum'])\nw.writerows(t.items())",
            TOTALS.replace("Oslo,12.5\\nRome,7\\n", "Rome,7.0\\nOslo,12.50"),
            TOTALS.replace("city,sum\\nOslo,12.5\\nRome,7", "sum,city\\n1.25e1,Oslo\\n7,Rome"),
            TOTALS.replace("city,sum", "\\ufeffcity, sum").replace("Oslo,12.5", '"Oslo", 12.5'),
        ),
        wrong=(
            TOTALS.replace("12.5", "12"),
            TOTALS.replace("Rome,7", "Rome,7\\nOslo,12.5"),
            TOTALS.replace("Rome,7\\n", ""),
            TOTALS.replace("city,sum\\n", ""),
            TOTALS.replace("sum", "total"),
            TOTALS.replace(",", ";"),
            TOTALS.replace("totals", "total"),
            TOTALS.replace("Oslo", "oslo"),
        ),
    ),
]
