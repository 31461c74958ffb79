"""The kinds of Container that a saved Catalog names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from imagenet_prep.sources.class_folders import Folder
from imagenet_prep.sources.container import Container
from imagenet_prep.sources.gone import Gone
from imagenet_prep.sources.parquets import ParquetImages
from imagenet_prep.sources.tars import Archive
from imagenet_prep.sources.zips import Zip

BY_NAME: Mapping[str, Callable[[Any], Container]] = {
    each.__name__: each for each in (Folder, Archive, ParquetImages, Zip, Gone)
}
"""Each kind by its name, made of its path."""
