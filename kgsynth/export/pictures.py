"""The pictures of tasks as PNG files: what a policy sees instead of the documents that draw them."""

from __future__ import annotations

import shutil
from collections.abc import Callable

from kgsynth.concept import content_id
from kgsynth.export.staging import Staging
from kgsynth.sandbox import Sandbox
from kgsynth.task import Image, Task
from kgsynth.verifiers.pictures.shown import render_png

FOLDER = ".pictures"  # kept from run to run until the export is whole


class Pictures:
    """Renders each picture once. `open_box` is called when the first has to be rendered."""

    def __init__(self, staging: Staging, open_box: Callable[[], Sandbox]) -> None:
        self._staging, self._open = staging, open_box
        self._sandbox: Sandbox | None = None

    def of(self, task: Task) -> list[bytes]:
        """PNG files, in order. Raises SandboxError when one cannot be rendered here."""
        return [self._png(image) for image in task.images]

    @property
    def sandbox(self) -> Sandbox:
        """Where pictures are rendered, opened with the first. Raises SandboxError."""
        self._sandbox = self._sandbox or self._open()
        return self._sandbox

    def _png(self, image: Image) -> bytes:
        name = f"{FOLDER}/{content_id('i', image.source, f'{image.width}x{image.height}')}.png"
        if self._staging.has(name):
            return (self._staging.path / name).read_bytes()
        png = render_png(image, self.sandbox)
        self._staging.put(name, png)
        return png

    def close(self) -> None:
        """Close the sandbox. Rendered files stay, for the next run."""
        if self._sandbox:
            self._sandbox.close()

    def forget(self) -> None:
        """Throw the rendered files away: they are in the export now."""
        shutil.rmtree(self._staging.path / FOLDER, ignore_errors=True)
