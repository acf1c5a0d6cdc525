"""How far two pictures are apart: in colour, tone, structure and edges. Distances, 0 for equal pictures.

    colour     CIEDE2000 of the worst spot: the largest mean over a window of 8 x 8 pixels
    tone       CIEDE2000, mean over what is drawn
    structure  1 - SSIM, mean over what is drawn and over a pyramid of halved pictures; in [0, 2]
    edges      1 - F1 of the edge pixels (Canny); in [0, 1]

A mostly white page resembles an empty one, so means are taken over what either picture draws: where it differs from
the background, the reference's most frequent colour. Colour and edges allow a shift of `shift` pixels: a pixel is right
when its colour lies within the range of colours around the same place in the other picture, which also takes care of
how edges are smoothed. Left out: the meaning of what is drawn.

CIEDE2000: Sharma, Wu, Dalal, Color Research and Application 30 (2005). SSIM: Wang, Bovik, Sheikh, Simoncelli, IEEE
Transactions on Image Processing 13 (2004). Edges: Canny, IEEE PAMI 8 (1986).
"""

from __future__ import annotations

import io

import numpy as np
from PIL import Image
from scipy.ndimage import maximum_filter, minimum_filter, uniform_filter
from skimage.color import deltaE_ciede2000, rgb2lab
from skimage.feature import canny
from skimage.metrics import structural_similarity
from skimage.transform import downscale_local_mean

Picture = np.ndarray  # (height, width, 3) floats in [0, 1], sRGB
MEASURES = ("colour", "tone", "structure", "edges")
MAX_PIXELS = 1 << 20
WINDOW = 8  # pixels
LEVELS = 3  # of the pyramid
VISIBLE = 3.0  # CIEDE2000 from the background of what counts as drawn
MARGIN = 4  # pixels around it that count too
SSIM_WINDOW = 7


def decode(data: bytes) -> np.ndarray:
    """A PNG as (height, width, 4) bytes, sRGB with alpha. Raises ValueError for anything else or too much of it."""
    try:
        with Image.open(io.BytesIO(data), formats=("PNG",)) as picture:
            if picture.width * picture.height > MAX_PIXELS:
                raise ValueError(f"{picture.width} x {picture.height} pixels are over {MAX_PIXELS}")
            return np.asarray(picture.convert("RGBA"))
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError(f"not a PNG that can be read: {error}") from error


def encode(picture: np.ndarray) -> bytes:
    """The inverse of `decode`."""
    file = io.BytesIO()
    Image.fromarray(picture).save(file, "PNG")
    return file.getvalue()


def over(picture: np.ndarray, backdrop: float) -> Picture:
    """A decoded picture laid over a grey of that value: 1.0 is white, 0.0 black."""
    alpha = picture[..., 3:] / 255
    return picture[..., :3] / 255 * alpha + backdrop * (1 - alpha)


def distances(picture: Picture, reference: Picture, *, shift: int = 1) -> dict[str, float]:
    """All MEASURES for two pictures of the same size of at least 8 x 8 pixels. `shift`: pixels that do not matter."""
    if np.array_equal(picture, reference):
        return dict.fromkeys(MEASURES, 0.0)
    lab, wanted = rgb2lab(picture), rgb2lab(reference)
    drawn = _drawn(lab, wanted, background(reference))
    return {
        "colour": _colour(lab, wanted, shift),
        "tone": float(_apart(lab, wanted)[drawn].mean()) if drawn.any() else 0.0,
        "structure": _structure(lab[..., 0] / 100, wanted[..., 0] / 100, drawn),
        "edges": _edges(lab[..., 0] / 100, wanted[..., 0] / 100, shift + 1),
    }


def background(picture: Picture) -> np.ndarray:
    """The most frequent colour, (3,)."""
    rows = np.round(picture.reshape(-1, 3) * 255).astype(np.int64)
    codes, counts = np.unique(rows @ np.array([65536, 256, 1]), return_counts=True)
    code = int(codes[counts.argmax()])
    return np.array([code >> 16, code >> 8 & 255, code & 255]) / 255


def _drawn(lab: np.ndarray, wanted: np.ndarray, ground: np.ndarray) -> np.ndarray:
    ground_lab = rgb2lab(ground.reshape(1, 1, 3))
    seen = np.maximum(_apart(lab, ground_lab), _apart(wanted, ground_lab)) > VISIBLE
    return _grown(seen, MARGIN)


def _grown(mask: np.ndarray, radius: int) -> np.ndarray:
    return maximum_filter(mask, size=2 * radius + 1)


def _colour(lab: np.ndarray, wanted: np.ndarray, shift: int) -> float:
    """The worst window mean of the distance to the range of colours within `shift` pixels, in both directions."""
    worst = np.maximum(_outside(lab, wanted, shift), _outside(wanted, lab, shift))
    return float(uniform_filter(worst, size=WINDOW, mode="reflect").max())


def _outside(lab: np.ndarray, other: np.ndarray, shift: int) -> np.ndarray:
    size = (2 * shift + 1, 2 * shift + 1, 1)
    nearest = np.clip(lab, minimum_filter(other, size=size), maximum_filter(other, size=size))
    return _apart(lab, nearest)


def _apart(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """CIEDE2000 of every pixel; it is worked out only where the two differ, which is mostly nowhere."""
    b = np.broadcast_to(b, a.shape)
    differ = (a != b).any(axis=-1)
    found = np.zeros(a.shape[:2])
    found[differ] = deltaE_ciede2000(a[differ], b[differ])
    return found


def _structure(light: np.ndarray, wanted: np.ndarray, drawn: np.ndarray) -> float:
    """1 - mean SSIM over the pyramid. The finest level is left out: it punishes how edges are smoothed."""
    values = []
    for level in range(1, LEVELS + 1):
        block = (2**level, 2**level)
        a, b = (downscale_local_mean(p, block) for p in (light, wanted))
        mask = downscale_local_mean(drawn.astype(float), block) > 0
        if min(a.shape) < SSIM_WINDOW or not mask.any():
            continue
        similar = structural_similarity(a, b, win_size=SSIM_WINDOW, data_range=1.0, full=True)[1]
        values.append(float(similar[mask].mean()))
    return 1 - float(np.mean(values)) if values else 0.0


def _edges(light: np.ndarray, wanted: np.ndarray, tolerance: int) -> float:
    mine, theirs = (canny(p, sigma=1.0, low_threshold=0.03, high_threshold=0.08) for p in (light, wanted))
    if not mine.any() or not theirs.any():
        return float(mine.any() != theirs.any())
    precision = float((mine & _grown(theirs, tolerance)).sum() / mine.sum())
    recall = float((theirs & _grown(mine, tolerance)).sum() / theirs.sum())
    return 1 - 2 * precision * recall / (precision + recall) if precision + recall else 1.0
