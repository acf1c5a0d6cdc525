"""The pictures of tasks as pixels, for whoever shows or exports them: `render_png(image, sandbox)`; and whether that can be done.

Light to import; what renders is loaded when first used.
"""

from __future__ import annotations

import functools
import json
import warnings

from kgsynth.errors import SandboxError
from kgsynth.sandbox import Sandbox
from kgsynth.task import Image

INSTALL = "install it with `sudo apt-get install chromium fonts-dejavu-core fonts-liberation`"
PROBE = "import json, shutil, sys; print(json.dumps([n for n in json.load(sys.stdin) if shutil.which(n)]))"


@functools.lru_cache(maxsize=16)
def can_render(sandbox: Sandbox) -> bool:
    """Whether there is a Chromium in the boxes of this sandbox; looked for once, and warned about when there is none."""
    from kgsynth.verifiers.pictures.browser import BINARIES

    result = sandbox.run([*sandbox.python, "-c", PROBE], stdin=json.dumps(BINARIES))
    found = result.ok and bool(json.loads(result.stdout))
    if not found:
        warnings.warn(f"no Chromium to render pictures with, so none are asked for; {INSTALL}", stacklevel=2)
    return found


@functools.lru_cache(maxsize=256)
def render_png(image: Image, sandbox: Sandbox) -> bytes:
    """The image as an opaque PNG on white, `image.width` x `image.height` pixels; the same document is rendered once.

    Raises SandboxError when there is no browser, or the document cannot be shown.
    """
    import numpy as np

    from kgsynth.verifiers.pictures.distance import encode, over
    from kgsynth.verifiers.pictures.render import render

    seen = render(image.source, image.format, image.width, image.height, sandbox)
    if seen.failed or "parsererror" in seen.elements:
        raise SandboxError(f"a picture cannot be rendered: {seen.failed or 'malformed'} in {image.source[:80]!r}")
    return encode(np.round(over(seen.pixels, 1.0) * 255).astype(np.uint8))
