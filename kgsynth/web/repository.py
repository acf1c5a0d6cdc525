"""GitHub repositories: one request for a snapshot instead of a walk through pages, and its text as one page.

A snapshot is the tarball GitHub serves for a ref. Of it are read, in this order, the README, documentation, small files
at the top (manifests), and the licence; the tree of files is listed between. It is unpacked in a child process
(child_tar.py), in memory, under bounds.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from kgsynth.errors import WebError
from kgsynth.web.charset import decode
from kgsynth.web.confined import run_confined
from kgsynth.web.licence import UNKNOWN, licence_of_text, name_of, strictest

MAX_LISTED = 400  # paths in the listing; more are counted by folder

_NAME = r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[\w.-]{1,100}?"
_ROOT = re.compile(rf"^/({_NAME})(?:\.git)?/?$")
_TREE = re.compile(rf"^/({_NAME})/tree/([^/\s]{{1,200}})/?$")
_BLOB = re.compile(rf"^/({_NAME})/(?:blob|raw)/([^/\s]{{1,200}})/(\S{{1,1000}})$")
_TARBALL = re.compile(rf"^/({_NAME})/(?:legacy\.)?tar\.gz/(?:refs/(?:heads|tags)/)?(\S{{1,200}})$")
_NO_OWNER = frozenset(
    "about account apps blog codespaces collections contact copilot customer-stories dashboard enterprise events explore"
    " features gist issues join login marketplace mobile new notifications organizations orgs pricing pulls readme search"
    " security settings signup site solutions sponsors stars team topics trending users watching".split()
)


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    name: str  # owner/name
    base: str  # the URL its relative links start from, "https://github.com/owner/name/blob/HEAD/"
    files: tuple[tuple[str, str], ...]  # (path, text), the README first
    listing: str  # paths, one a line
    licence: str
    licence_evidence: str


def rewrite(url: str) -> list[str]:
    """What to fetch instead of a page of github.com, the best first; [] for any other URL.

    >>> rewrite("https://github.com/psf/requests")
    ['https://codeload.github.com/psf/requests/tar.gz/HEAD']
    >>> rewrite("https://github.com/o/r/blob/main/docs/a.ipynb")
    ['https://raw.githubusercontent.com/o/r/main/docs/a.ipynb']
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or parts.hostname not in ("github.com", "www.github.com"):
        return []
    if parts.path.split("/")[1:2] and parts.path.split("/")[1].lower() in _NO_OWNER:
        return []
    if match := _BLOB.match(parts.path):
        return [f"https://raw.githubusercontent.com/{match[1]}/{match[2]}/{match[3]}"]
    if match := _TREE.match(parts.path):
        return [f"https://codeload.github.com/{match[1]}/tar.gz/{match[2]}"]
    if match := _ROOT.match(parts.path):
        return [f"https://codeload.github.com/{match[1]}/tar.gz/HEAD"]
    return []


def read_snapshot(body: bytes, url: str) -> Snapshot:
    """The texts of a tar.gz snapshot; `url` is where it came from. Raises WebError when it is no such archive."""
    found = run_confined("child_tar.py", body, url)
    if not found["paths"]:
        raise WebError(f"{url}: no file in the archive {found['stopped']}".rstrip(), cause="no text")
    name, ref = _named(url)
    texts = [(path, decode(text.encode("latin-1"))) for path, text in found["files"]]
    texts = [(path, text) for path, text in texts if "\0" not in text]
    known = {path: licence_of_text(text, path) for path, text in texts if _is_licence(path)}
    own = [found for path, found in known.items() if "/" not in path]  # those in a folder are often other people's
    licence, evidence = strictest(own or known.values())
    if licence == UNKNOWN:
        licence, evidence = strictest(_manifest(path, text) for path, text in texts)
    return Snapshot(
        name=name,
        base=f"https://github.com/{name}/blob/{ref}/",
        files=tuple((path, text) for path, text in texts if not _is_licence(path)),
        listing=_listing(found["paths"], found["stopped"]),
        licence=licence,
        licence_evidence=evidence,
    )


def _named(url: str) -> tuple[str, str]:
    """(owner/name, ref) of a snapshot's URL."""
    path = unquote(urlsplit(url).path)
    for pattern in (_TARBALL, _TREE):
        if match := pattern.match(path):
            return match[1], match[2]
    if match := _ROOT.match(path):
        return match[1], "HEAD"
    return path.strip("/").rpartition("/")[2] or "snapshot", "HEAD"


def _is_licence(path: str) -> bool:
    return bool(re.match(r"(?:licenses/|(?:un)?licen[cs]e|copying)", path.lower()))


def _manifest(path: str, text: str) -> tuple[str, str]:
    """The licence a pyproject.toml, Cargo.toml or package.json names."""
    if path in ("pyproject.toml", "Cargo.toml", "package.json", "setup.cfg"):
        for match in re.finditer(r'^\s{0,9}"?license"?\s{0,9}[=:]\s{0,9}(.{1,120})$', text, re.MULTILINE):
            value = match[1].strip(" \t,")
            named = re.search(r"[A-Za-z0-9][\w.+-]{1,40}(?: (?:OR|AND) [\w.+-]{1,40})?", value.replace("text", ""))
            if named:
                return name_of(named[0]) or name_of(value) or UNKNOWN, f"{path}: {match[0].strip()}"[:300]
    return UNKNOWN, ""


def _listing(paths: list[str], stopped: str) -> str:
    """The paths, shallow ones first; the folders of those that do not fit with how many files each holds."""
    ordered = sorted(paths, key=lambda path: (path.count("/"), path))
    lines = ordered[:MAX_LISTED]
    folders = Counter(path.rpartition("/")[0] for path in ordered[MAX_LISTED:])
    lines += [f"{folder}/ ({count} files)" for folder, count in folders.most_common(50)]
    return "\n".join([*lines, *([f"(not read further: {stopped})"] if stopped else [])])
