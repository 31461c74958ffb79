"""Gone, a container whose file gave its space to the shards: what it held is known, and can't be read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from imagenet_prep.errors import InputError
from imagenet_prep.sources.container import Reading, Row
from imagenet_prep.sources.slices import Buffer
from imagenet_prep.storage.location import AnyPath


@dataclass(frozen=True, slots=True)
class Gone:
    """A file that convert consumed; ``path`` is where it lay."""

    path: AnyPath
    is_sliced: ClassVar[bool] = False
    reading: ClassVar[Reading] = "anywhere"

    def place(self, row: Row) -> str:
        """Where a row lay, in words."""
        return f"{self.path.name}, which was consumed"

    def open(self) -> Callable[[Row], Buffer]:
        """Raise the error that says where the images are now."""
        raise gone(self.path)


def gone(path: AnyPath) -> InputError:
    """The error for a file that is needed once more, and was given up on purpose."""
    return InputError(
        f"{path} was consumed: its images are in the shards alone",
        "expected no more need for it: imagenet-prep convert --consume gave its space to the shards",
        "get it again with imagenet-prep download; then "
        "imagenet-prep repair makes wrong or missing shards, imagenet-prep convert another set",
    )
