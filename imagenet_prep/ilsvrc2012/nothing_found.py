"""The error for a DATA_DIR without images of ImageNet: what was expected there, what lies there, what that could be."""

from __future__ import annotations

import itertools
from contextlib import suppress

from imagenet_prep.errors import InputError
from imagenet_prep.escaping import command
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.finding import find_source
from imagenet_prep.state.beginning import load_beginning
from imagenet_prep.storage.files import names_in, scan
from imagenet_prep.storage.layout import STATE_NAME, Layout
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.text import listed

_IMAGES = (".jpeg", ".jpg", ".png", ".tif", ".tiff")
_LOOKED_AT = 50  # names of a folder, to see what it holds


def nothing_found(layout: Layout) -> InputError:
    """That error; a conversion that was begun knows where its images lay."""
    there, names = _what_lies_there(layout)
    expected = "expected the archives of image-net.org, folders train/ and val/, or a copy of Kaggle or Hugging Face"
    begun, own = load_beginning(layout), own_images(layout)
    hint: str = f"{command('download', layout.data_dir)}    (or name the folder with --raw)"
    if begun is not None:
        hint = command("convert", layout.data_dir, (*layout.elsewhere(begun.raw), *begun.options))
    elif own is not None:
        hint = f"{command('init', own)}    (for images of your own)"
    return InputError(
        f"no images of ImageNet in {layout.raw_dir}", f"{expected}; found {listed(names) or 'nothing'} in {there}", hint
    )


def own_images(layout: Layout) -> AnyPath | None:
    """Where images lie that are none of ImageNet's, in folders or beside one another: somebody's own data set."""
    there, names = _what_lies_there(layout)
    if not any(_holds_images(there / name) for name in names[:_LOOKED_AT]):
        return None
    return None if any(find_source(layout, split) for split in facts.SPLITS) else there


def _what_lies_there(layout: Layout) -> tuple[AnyPath, list[str]]:
    """The raw folder and the names in it; if there are none, DATA_DIR and those."""
    raw, data = _names(layout.raw_dir), _names(layout.data_dir)
    return (layout.data_dir, data) if data and not raw else (layout.raw_dir, raw)


def _names(folder: AnyPath) -> list[str]:
    """What lies in a folder, but for what we keep there; nothing if there is none."""
    with suppress(OSError):
        return sorted(name for name in names_in(folder) if name != STATE_NAME and not name.startswith("."))
    return []


def _holds_images(path: AnyPath) -> bool:
    """Whether it is an image, or a folder of images, by their names."""
    if path.suffix.lower() in _IMAGES:
        return True
    with suppress(OSError), scan(path) as entries:
        return any(each.name.lower().endswith(_IMAGES) for each in itertools.islice(entries, _LOOKED_AT))
    return False
