"""Photographs of ImageNet's classes that installed packages ship;
none of them is in this repository.
"""

from __future__ import annotations

from importlib.metadata import distribution
from pathlib import Path

PHOTOGRAPHS = {
    "scikit-image": {
        "skimage/data/camera.png": "n04485082",  # tripod
        "skimage/data/chelsea.png": "n02123159",  # tiger cat
        "skimage/data/coffee.png": "n07920052",  # espresso
        "skimage/data/motorcycle_left.png": "n03785016",  # moped
        "skimage/data/rocket.jpg": "n03773504",  # missile
    },
    "scikit-learn": {
        "sklearn/datasets/images/china.jpg": "n03877845",  # palace
        "sklearn/datasets/images/flower.jpg": "n11939491",  # daisy
    },
}
"""The WordNet id of each file of a package."""


def photographs() -> dict[Path, str]:
    """The WordNet id of each photograph by its path."""
    return {
        Path(str(distribution(package).locate_file(name))): wnid
        for package, files in PHOTOGRAPHS.items()
        for name, wnid in files.items()
    }
