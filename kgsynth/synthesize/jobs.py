"""Jobs in a small world of files: a request in words, the files, what must hold afterwards, and a script that does it.

What must hold is computed here from the entries; the script computes it again from the files, in the sandbox, and the gate
keeps a job only when both agree. Thresholds are values that occur, so that "at least" and "more than" differ.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

LOG = "2026 catalogue opened\n"
READ_CSV = "import csv\nrows = list(csv.DictReader(open('pages.csv', newline='')))\n"
WRITE_CSV = """with open('pages.csv', 'w', newline='') as file:
    writer = csv.DictWriter(file, ['title', 'topic', 'words'])
    writer.writeheader()
    writer.writerows(rows)
"""


@dataclass(frozen=True, kw_only=True, order=True)
class Entry:
    """A page of the material, as a world knows it."""

    title: str
    topic: str  # the concept above it
    words: int  # on the page


@dataclass(frozen=True, kw_only=True)
class World:
    """What the jobs are about: at least six entries with different titles, and which lies directly above which."""

    entries: tuple[Entry, ...]
    links: tuple[tuple[str, str], ...]  # (upper title, lower title)
    others: tuple[str, ...]  # titles of pages that are not among the entries


@dataclass(frozen=True, kw_only=True)
class Job:
    """A request with its world. `wrong` are scripts that nearly do it."""

    request: str
    listing: tuple[str, ...]  # what the files are, one line each
    files: dict[str, Any]
    checks: tuple[dict[str, Any], ...]
    script: str
    wrong: tuple[str, ...] = field(repr=False)


def mark(world: World, rng: random.Random) -> Job | None:
    """One file: a flag on every entry of a JSON array."""
    bound = _bound(world, rng)
    script = f"""import json
entries = json.load(open('catalogue.json'))
for entry in entries:
    entry['long'] = entry['words'] >= {bound}
json.dump(entries, open('catalogue.json', 'w'))
"""
    rows = [_row(e) for e in world.entries]
    return Job(
        request=f'Give every entry of catalogue.json a further member "long": true when it has at least {bound} words, '
        "false when it has fewer. Change nothing else in it, and keep the order of the entries.",
        listing=(_json_listing(world), "audit.log: a text file, not to be changed"),
        files={"catalogue.json": {"json": rows}, "audit.log": LOG},
        checks=(
            {"check": "json", "path": "catalogue.json", "value": [{**r, "long": r["words"] >= bound} for r in rows]},
            {"check": "unchanged", "except": ["catalogue.json"]},
        ),
        script=script,
        wrong=_changed(
            script, (">=", ">"), (">=", "<"), (f"= entry['words'] >= {bound}", "= True"),
            (f">= {bound}", f">= {bound + 1}"), ("entry['long']", "entry['lengthy']"),
            (f"entry['words'] >= {bound}", f"str(entry['words'] >= {bound}).lower()"),
            ("entries, open('catalogue.json'", "entries, open('marked.json'"), ("for entry in entries:", "for entry in entries[1:]:"),
            ("json.dump(entries,", "json.dump(sorted(entries, key=lambda e: e['words']),"),
        ),
    )  # fmt: skip


def prune(world: World, rng: random.Random) -> Job | None:
    """One file: rows renamed and rows removed."""
    bound = _bound(world, rng)
    kept = [e for e in world.entries if e.words > bound]
    topic = rng.choice(sorted({e.topic for e in kept}))
    script = f"""{READ_CSV}rows = [row for row in rows if int(row['words']) > {bound}]
for row in rows:
    if row['topic'] == {topic!r}:
        row['topic'] = 'selected'
{WRITE_CSV}"""
    return Job(
        request=f"Remove from pages.csv every row with at most {bound} words. In the rows that stay, replace the topic "
        f'"{topic}" with "selected". The columns stay as they are; the order of the rows does not matter.',
        listing=(_csv_listing(world), "audit.log: a text file, not to be changed"),
        files={"pages.csv": {"csv": _table(world.entries)}, "audit.log": LOG},
        checks=(
            _csv_check("pages.csv", [[e.title, "selected" if e.topic == topic else e.topic, e.words] for e in kept]),
            {"check": "unchanged", "except": ["pages.csv"]},
        ),
        script=script,
        wrong=_changed(
            script, (f"> {bound}", f">= {bound}"), (f"> {bound}", f"<= {bound}"), ("'selected'", "'Selected'"), ("['topic'] ==", "['topic'] !="),
            (f"if row['topic'] == {topic!r}:", "if True:"), (f"rows = [row for row in rows if int(row['words']) > {bound}]\n", ""),
            ("    writer.writeheader()\n", ""), ("open('pages.csv', 'w'", "open('selected.csv', 'w'"),
            (f"if row['topic'] == {topic!r}:", "if False:"),
        ),
    )  # fmt: skip


def totals(world: World, rng: random.Random) -> Job | None:
    """Two files: a report by topic."""
    groups = {topic: [e for e in world.entries if e.topic == topic] for topic in _topics(world)}
    sizes = sorted({len(group) for group in groups.values()})
    if len(sizes) == 1:
        return None
    least = rng.choice(sizes[1:])
    rows = [[topic, len(group), sum(e.words for e in group)] for topic, group in groups.items() if len(group) >= least]
    script = f"""{READ_CSV}groups = {{}}
for row in rows:
    groups.setdefault(row['topic'], []).append(int(row['words']))
with open('totals.csv', 'w', newline='') as file:
    writer = csv.writer(file)
    writer.writerow(['topic', 'pages', 'words'])
    for topic, words in groups.items():
        if len(words) >= {least}:
            writer.writerow([topic, len(words), sum(words)])
"""
    return Job(
        request="Write totals.csv with the columns topic, pages and words: one row for each topic that has at least "
        f"{least} pages, with the number of its pages and the sum of their words. The order of the rows does not matter. Change no other file.",
        listing=(_csv_listing(world), "audit.log: a text file, not to be changed"),
        files={"pages.csv": {"csv": _table(world.entries)}, "audit.log": LOG},
        checks=(
            {"check": "csv", "path": "totals.csv", "columns": ["topic", "pages", "words"], "rows": rows},
            {"check": "unchanged", "except": ["totals.csv"]},
        ),
        script=script,
        wrong=_changed(
            script, (f">= {least}", f">= {least - 1}"), (f">= {least}", f"> {least}"), ("sum(words)", "max(words)"), ("sum(words)", "sum(words) // len(words)"),
            ("len(words), sum(words)", "sum(words), len(words)"), ("'totals.csv'", "'total.csv'"), ("    writer.writerow(['topic', 'pages', 'words'])\n", ""),
            ("for row in rows:", "for row in rows[1:]:"), ("'pages', 'words'])", "'count', 'words'])"),
        ),
    )  # fmt: skip


def merge(world: World, rng: random.Random) -> Job | None:
    """Three files: updates are applied, those of unknown pages listed, and the updates removed."""
    if len(world.others) < 2:
        return None
    known = rng.sample(world.entries, 3)
    updates = {e.title: e.words + rng.randrange(10, 90) for e in known} | {
        title: rng.randrange(50, 500) for title in rng.sample(world.others, 2)
    }
    titles = {e.title for e in world.entries}
    unknown = sorted(title for title in updates if title not in titles)
    script = f"""import json, os
{READ_CSV}updates = json.load(open('updates.json'))
for row in rows:
    row['words'] = updates.pop(row['title'], row['words'])
{WRITE_CSV}with open('unknown.txt', 'w') as file:
    for title in sorted(updates):
        print(title, file=file)
os.remove('updates.json')
"""
    return Job(
        request="Apply updates.json to pages.csv: a page that it names gets the number of words given there. Titles in updates.json "
        "that pages.csv does not have go into unknown.txt, one a line, sorted by code point, and not into pages.csv. Then delete "
        "updates.json. The order of the rows does not matter.",
        listing=(_csv_listing(world), f"updates.json: a JSON object of {len(updates)} members, title to number of words"),
        files={"pages.csv": {"csv": _table(world.entries)}, "updates.json": {"json": updates}},
        checks=(
            _csv_check("pages.csv", [[e.title, e.topic, updates.get(e.title, e.words)] for e in world.entries]),
            {"check": "equals", "path": "unknown.txt", "text": "\n".join(unknown)},
            {"check": "absent", "path": "updates.json"},
            {"check": "unchanged", "except": ["pages.csv", "unknown.txt", "updates.json"]},
        ),
        script=script,
        wrong=_changed(
            script, ("os.remove('updates.json')\n", ""), ("sorted(updates)", "sorted(updates, reverse=True)"), ("updates.pop(row", "updates.get(row"),
            ("sorted(updates):", "sorted(updates)[1:]:"), (WRITE_CSV, ""), ("print(title, file=file)", "print(title, updates[title], file=file)"),
            ("updates.pop(row['title'], row['words'])", "updates.pop(row['title'], 0)"), ("'unknown.txt'", "'unknown.csv'"),
            ("with open('unknown", "rows += [{'title': t, 'topic': '', 'words': w} for t, w in updates.items()]\n" + WRITE_CSV + "with open('unknown"),
        ),
    )  # fmt: skip


def archive(world: World, rng: random.Random) -> Job | None:
    """A database and a log: everything below a page, at any depth, is moved."""
    tops = [
        top
        for top in sorted({upper for upper, _ in world.links})
        if len(_below(world, top)) > len(_children(world, top))
    ]
    if not tops:
        return None
    top = rng.choice(tops)
    below = _below(world, top)
    script = f"""import sqlite3
db = sqlite3.connect('catalogue.db')
below, todo = set(), [{top!r}]
while todo:
    for (child,) in db.execute('SELECT child FROM link WHERE parent = ?', (todo.pop(),)).fetchall():
        if child not in below:
            below.add(child)
            todo.append(child)
with open('audit.log', 'a') as log:
    for title in sorted(below):
        db.execute("UPDATE page SET topic = 'archive' WHERE title = ?", (title,))
        print('archived', title, file=log)
db.commit()
db.close()
"""
    rows = [[e.title, "archive" if e.title in below else e.topic, e.words] for e in world.entries]
    return Job(
        request=f'In catalogue.db, set the topic of every page that lies below "{top}" to "archive": its children by the table link, their '
        f'children, and so on, but not "{top}" itself. For each of these pages append the line "archived TITLE" to audit.log, sorted by '
        "title (by code point). Leave the table link and all other rows as they are.",
        listing=(_db_listing(world), "audit.log: a log of one line, to be appended to"),
        files={"catalogue.db": {"sqlite": _sql(world)}, "audit.log": LOG},
        checks=(
            *_db_checks(rows, world),
            {"check": "log", "path": "audit.log", "contains": [f"archived {title}" for title in sorted(below)], "exactly": True},
            {"check": "unchanged", "except": ["catalogue.db", "audit.log"]},
        ),
        script=script,
        wrong=_changed(
            script, ("            todo.append(child)\n", ""), ("db.commit()\n", ""), ("sorted(below)", "sorted(below, reverse=True)"),
            ("'audit.log', 'a'", "'audit.log', 'w'"), ("sorted(below):", f"sorted(below | {{{top!r}}}):"), ("'archived', title", "title, 'archived'"),
            (" WHERE title = ?\", (title,))", '")'), ("topic = 'archive'", "topic = 'archived'"), ("sorted(below):", "sorted(below)[:-1]:"),
            ("SELECT child FROM link WHERE parent", "SELECT parent FROM link WHERE child"),
        ),
    )  # fmt: skip


def schedule(world: World, rng: random.Random) -> Job | None:
    """A database and a log: a plan under a budget, in a stated order."""
    ranked = sorted(world.entries, key=lambda e: (-e.words, e.title))
    stop = rng.randrange(2, len(ranked) - 2)
    budget = sum(e.words for e in ranked[:stop]) + min(e.words for e in ranked) // 2 + min(e.words for e in ranked)
    planned: list[Entry] = []
    for entry in ranked:
        if sum(e.words for e in planned) + entry.words > budget:
            break
        planned.append(entry)
    script = f"""import sqlite3
db = sqlite3.connect('catalogue.db')
db.execute('CREATE TABLE plan(position INTEGER, title TEXT)')
left, position = {budget}, 0
for title, words in db.execute('SELECT title, words FROM page ORDER BY words DESC, title').fetchall():
    if words > left:
        break
    left -= words
    position += 1
    db.execute('INSERT INTO plan VALUES (?, ?)', (position, title))
db.commit()
db.close()
with open('audit.log', 'a') as log:
    print('planned', position, file=log)
"""
    rows = [[e.title, e.topic, e.words] for e in world.entries]
    return Job(
        request="Add a table plan(position INTEGER, title TEXT) to catalogue.db. Go through the pages from the longest (most words) to the "
        "shortest, pages of equal length by title (by code point), and take each as long as the words of all that are taken stay at or "
        f"below {budget}; stop at the first page that would go over it. Positions count from 1. Leave the other tables as they are, and append the "
        'line "planned N" to audit.log, N being the number of pages taken.',
        listing=(_db_listing(world), "audit.log: a log of one line, to be appended to"),
        files={"catalogue.db": {"sqlite": _sql(world)}, "audit.log": LOG},
        checks=(
            {"check": "sqlite", "path": "catalogue.db", "query": "SELECT position, title FROM plan", "rows": [[i, e.title] for i, e in enumerate(planned, 1)]},
            *_db_checks(rows, world),
            {"check": "log", "path": "audit.log", "contains": [f"planned {len(planned)}"], "exactly": True},
            {"check": "unchanged", "except": ["catalogue.db", "audit.log"]},
        ),
        script=script,
        wrong=_changed(
            script, ("        break\n", "        continue\n"), ("words DESC, title", "words, title"), ("position = " + str(budget) + ", 0", "position = " + str(budget) + ", -1"),
            (f"{budget}, 0", f"{budget}, -1"), ("db.commit()\n", ""), ("'planned', position", "'planned', left"),
            ("    left -= words\n", ""), ("'audit.log', 'a'", "'audit.log', 'w'"), ("words DESC, title", "title"), ("(position, title))", "(position - 1, title))"),
            ("print('planned', position, file=log)", "pass"),
        ),
    )  # fmt: skip


JOBS: dict[str, tuple[Callable[[World, random.Random], Job | None], ...]] = {
    "easy": (mark, prune),
    "medium": (totals, merge),
    "hard": (archive, schedule),
}


def _changed(script: str, *changes: tuple[str, str]) -> tuple[str, ...]:
    """The script with one change each; changes that change nothing are left out."""
    return tuple(dict.fromkeys(new for old, by in changes if (new := script.replace(old, by)) != script))


def _bound(world: World, rng: random.Random) -> int:
    """A number of words that an entry has, neither the least nor the most."""
    counts = sorted({e.words for e in world.entries})
    return rng.choice(counts[1:-1])


def _topics(world: World) -> list[str]:
    return sorted({e.topic for e in world.entries})


def _children(world: World, top: str) -> set[str]:
    return {lower for upper, lower in world.links if upper == top}


def _below(world: World, top: str) -> set[str]:
    found, todo = set[str](), [top]
    while todo:
        new = _children(world, todo.pop()) - found
        found |= new
        todo += new
    return found


def _row(entry: Entry) -> dict[str, Any]:
    return {"title": entry.title, "topic": entry.topic, "words": entry.words}


def _table(entries: Sequence[Entry]) -> list[list[Any]]:
    return [["title", "topic", "words"], *([e.title, e.topic, e.words] for e in entries)]


def _csv_check(path: str, rows: list[list[Any]]) -> dict[str, Any]:
    return {"check": "csv", "path": path, "columns": ["title", "topic", "words"], "rows": rows}


def _db_checks(rows: list[list[Any]], world: World) -> tuple[dict[str, Any], ...]:
    links = [list(link) for link in world.links]
    return (
        {"check": "sqlite", "path": "catalogue.db", "query": "SELECT title, topic, words FROM page", "rows": rows},
        {"check": "sqlite", "path": "catalogue.db", "query": "SELECT parent, child FROM link", "rows": links},
    )


def _sql(world: World) -> str:
    pages = ", ".join(f"({_quoted(e.title)}, {_quoted(e.topic)}, {e.words})" for e in world.entries)
    links = ", ".join(f"({_quoted(upper)}, {_quoted(lower)})" for upper, lower in world.links)
    return (
        "CREATE TABLE page(title TEXT PRIMARY KEY, topic TEXT, words INTEGER);\nCREATE TABLE link(parent TEXT, child TEXT);\n"
        f"INSERT INTO page VALUES {pages};\nINSERT INTO link VALUES {links};"
    )


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _json_listing(world: World) -> str:
    first = json.dumps(_row(world.entries[0]), ensure_ascii=False)
    return f"catalogue.json: a JSON array of {len(world.entries)} objects, the first of which is {first}"


def _csv_listing(world: World) -> str:
    first = world.entries[0]
    return (
        f"pages.csv: a head with the columns title, topic, words, and {len(world.entries)} rows, the first of which is "
        f"{first.title!r}, {first.topic!r}, {first.words}"
    )


def _db_listing(world: World) -> str:
    return (
        f"catalogue.db: an SQLite database with the tables page(title TEXT PRIMARY KEY, topic TEXT, words INTEGER), {len(world.entries)} "
        f"rows, and link(parent TEXT, child TEXT), {len(world.links)} rows of titles"
    )
