"""The environment of the peers, and one export of each format."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kgsynth.cli import main
from tests.peers.tasks import one_of_each

ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / ".venv-peers"
PYTHON = PEERS / "bin" / "python"
READY = bool(list(PEERS.glob("ready-*")))
NEEDS_PEERS = pytest.mark.skipif(not READY, reason="there is no .venv-peers: make it with `scripts/setup.sh test`")


def peer(code: str, *arguments: object, env: dict[str, str] | None = None, python: Path = PYTHON) -> str:
    """What a program prints in the peers' environment, where tests and kgsynth can be imported. It must end well."""
    result = subprocess.run(
        [str(python), "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **OFFLINE, **(env or {})},
        timeout=300,
    )
    assert result.returncode == 0, (result.stdout + result.stderr)[-4000:]
    return result.stdout


OFFLINE = {
    "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false",
    "CUDA_VISIBLE_DEVICES": "", "PYTHONUNBUFFERED": "1",
}  # fmt: skip


@pytest.fixture(scope="session")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A task set without pictures, of 12 verifiers."""
    path = tmp_path_factory.mktemp("texts") / "tasks.jsonl"
    one_of_each(pictures=False).save(path)
    return path


Exported = Callable[..., Path]


@pytest.fixture(scope="session")
def exported(texts: Path, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """Exports a task set, by the command line, and once only: exported(format, *options) is the folder."""
    folder, made = tmp_path_factory.mktemp("exported"), dict[tuple[str, ...], Path]()

    def export(form: str, *options: str, tasks: Path = texts) -> Path:
        key = (form, str(tasks), *options)
        if key not in made:
            made[key] = folder / f"{form}-{len(made)}"
            words = ["export", str(tasks), str(made[key]), "--to", form, *options]
            if form in ("verl", "huggingface") and READY:  # parquet: pyarrow is the peers'
                peer("import sys; from kgsynth.cli import main; sys.exit(main(sys.argv[1:]))", *words)
            else:
                assert main(words) == 0
        return made[key]

    return export


def importing(path: Path, form: str, out: Path, *options: str) -> int:
    """`kgsynth import`, where there is pyarrow."""
    words = ["import", str(path), str(out), "--from", form, *options]
    if form == "verl":
        peer("import sys; from kgsynth.cli import main; sys.exit(main(sys.argv[1:]))", *words)
        return 0
    return main(words)
