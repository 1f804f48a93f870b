"""A generated corpus of small pictures, without a download: coloured shapes and captions to check exactly."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Annotated, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from softsearch.data.corpora.base import FilePair, Picture, Split
from softsearch.data.corpora.features import FeatureSources
from softsearch.data.preparation.cache_folder import made_folder
from softsearch.ranges import Count, Range
from softsearch.text.corpus import write_lines
from softsearch.text.features import Features, feature_lines

_FORMAT = 1  # raise it when the pictures change
_CELL, _CELLS = 16, 3  # pixels per cell, and cells per row; at most one shape per cell
_PATCH, _PATCHES, _BLOCK = 8, 6, 2  # pixels per patch, patches per row, and pixels averaged into one value
POSITIONS = _PATCHES**2
_BACKGROUND = (40, 40, 40)
_COLOURS = {"red": (220, 30, 30), "green": (30, 180, 30), "blue": (40, 60, 230), "yellow": (230, 220, 40)}
_SHAPES = ("circle", "square", "triangle")
_WIDTHS = {"small": 8, "large": 14}  # pixels
_ROWS, _COLUMNS = ("top", "middle", "bottom"), ("left", "centre", "right")
_Examples = Annotated[int, Range(1, 1_000_000)]


class _Object(NamedTuple):
    row: int  # row of its cell
    column: int
    shape: str
    colour: str
    size: str
    down: int  # pixels from the cell's middle
    right: int

    def __str__(self) -> str:
        return f"a {self.size} {self.colour} {self.shape}"


@dataclass(frozen=True, kw_only=True)
class Shapes(FeatureSources):
    """Pictures of one or two shapes as feature vectors, and captions: "a small red circle above a large blue square".

    A picture of 48 by 48 pixels is cut into 36 patches. The vector of a patch holds its colours, in blocks of 2 by 2
    pixels, and indicators of its row and column. No picture occurs twice. The same options (and version of Pillow) give
    the same files.

    Args:
        val_size: examples in ``val``; with the same seed, ``val`` and ``test`` stay the same when ``train_size``
            changes.
    """

    src_lang: str = "image"
    tgt_lang: str = "en"
    train_size: _Examples = 8_000
    val_size: _Examples = 500
    test_size: _Examples = 500
    seed: Count = 1

    def files(self, cache_dir: Path) -> dict[str, FilePair]:
        """Returns the files in ``cache_dir``, written there if necessary.

        Raises:
            CorpusError: ``cache_dir`` cannot be written.
        """
        folder = self._folder(cache_dir)
        return {split: (folder / f"{split}.src", folder / f"{split}.en") for split in get_args(Split)}

    def features(self, cache_dir: Path) -> dict[str, Path]:
        folder = self._folder(cache_dir)
        return {split: folder / f"{split}.npy" for split in get_args(Split)}

    def picture(self, features: Features) -> Picture:
        """Draws the picture from its patches."""
        side = _PATCH // _BLOCK
        colours = features[:, : 3 * side**2].reshape(_PATCHES, _PATCHES, side, side, 3)
        blocks = (255 * colours.astype(np.float32)).round().astype(np.uint8).transpose(0, 2, 1, 3, 4)
        return blocks.reshape(_PATCHES * side, -1, 3).repeat(_BLOCK, axis=0).repeat(_BLOCK, axis=1)

    def _folder(self, cache_dir: Path) -> Path:
        identity = self._identity(Pillow=version("Pillow"), format=_FORMAT)
        return made_folder(cache_dir, "shapes", identity, self._write)

    def _write(self, folder: Path) -> None:
        scenes = _scenes(self.seed)
        for split, size in (("test", self.test_size), ("val", self.val_size), ("train", self.train_size)):
            chosen = list(islice(scenes, size))
            features = np.stack([patches(draw(scene)) for scene in chosen]).astype(np.float16)
            np.save(folder / f"{split}.npy", features, allow_pickle=False)
            write_lines(folder / f"{split}.src", feature_lines(features))
            write_lines(folder / f"{split}.en", map(caption, chosen))


Scene = tuple[_Object, ...]  # in the order of the caption


def _scenes(seed: int) -> Iterator[Scene]:
    """Yields scenes endlessly, without repetition."""
    rng = random.Random(seed)
    seen: set[Scene] = set()

    def below(limit: int) -> int:
        return int(rng.random() * limit)  # only random() is guaranteed to be the same in all versions of Python

    while True:
        cells = sorted({below(_CELLS**2) for _ in range(2)})  # sometimes only one
        scene = tuple(
            _Object(
                *divmod(cell, _CELLS),
                _SHAPES[below(len(_SHAPES))],
                [*_COLOURS][below(len(_COLOURS))],
                [*_WIDTHS][below(len(_WIDTHS))],
                below(3) - 1,
                below(3) - 1,
            )
            for cell in cells
        )
        if scene not in seen:
            seen.add(scene)
            yield scene


def caption(scene: Scene) -> str:
    """Describes the shapes of a picture and their places: the higher one first, or the left one of two in a row."""
    if len(scene) == 1:
        (only,) = scene
        return f"{only} at the {_ROWS[only.row]} {_COLUMNS[only.column]}"
    first, second = scene
    return f"{first} {'above' if first.row < second.row else 'to the left of'} {second}"


def draw(scene: Scene) -> NDArray[np.uint8]:
    """The picture, ``[48, 48, 3]``."""
    image = Image.new("RGB", (_CELL * _CELLS, _CELL * _CELLS), _BACKGROUND)
    canvas = ImageDraw.Draw(image)
    for thing in scene:
        half = _WIDTHS[thing.size] // 2
        x, y = (_CELL * at + _CELL // 2 + off for at, off in ((thing.column, thing.right), (thing.row, thing.down)))
        box, colour = (x - half, y - half, x + half - 1, y + half - 1), _COLOURS[thing.colour]
        if thing.shape == "circle":
            canvas.ellipse(box, fill=colour)
        elif thing.shape == "square":
            canvas.rectangle(box, fill=colour)
        else:
            canvas.polygon([(x, box[1]), (box[2], box[3]), (box[0], box[3])], fill=colour)
    return np.asarray(image)


def patches(picture: NDArray[np.uint8]) -> NDArray[np.float32]:
    """The feature vectors of a picture ``[48, 48, 3]``: ``[36, 60]``, the patches row by row."""
    side = _PATCH // _BLOCK
    blocks = (
        picture.reshape(_PATCHES, side, _BLOCK, _PATCHES, side, _BLOCK, 3).mean(axis=(2, 5), dtype=np.float32) / 255
    )
    colours = blocks.transpose(0, 2, 1, 3, 4).reshape(POSITIONS, -1)  # by row, column, and position in the patch
    row, column = np.divmod(np.arange(POSITIONS), _PATCHES)
    places = np.eye(_PATCHES, dtype=np.float32)
    return np.concatenate([colours, places[row], places[column]], axis=1)
