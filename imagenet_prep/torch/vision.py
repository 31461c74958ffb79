"""VisionDataset: (image, target) of every record as torchvision's tensors,
both changed by transforms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch

from imagenet_prep.errors import UsageError
from imagenet_prep.escaping import command_line
from imagenet_prep.reading.arguments import shown
from imagenet_prep.reading.record import Record
from imagenet_prep.reading.shard_set import RecordSequence
from imagenet_prep.text import number_of
from imagenet_prep.torch.record_dataset import RecordDataset

T = TypeVar("T", covariant=True)

Transforms = Callable[[Any, Any], Any]
"""A function of an image and its target that gives both, as those of torchvision.transforms.v2."""


def import_tv_tensors(asker: str) -> Any:
    """The module torchvision.tv_tensors; ``asker`` is the name of the data set that needs it.

    Raises:
        UsageError: torchvision is not installed, or is made for another PyTorch.
    """
    try:
        from torchvision import tv_tensors
    except (ImportError, RuntimeError, OSError) as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "torchvision":
            raise UsageError(
                f"{asker} needs torchvision, which is not installed",
                "expected version 0.19 or later",
                command_line(["pip", "install", "torchvision"]),
            ) from error
        # it is too old, or its compiled part does not load
        reason = " ".join(str(error).split())
        raise UsageError(
            f"{asker} needs torchvision, which can't be imported: {reason}",
            f"expected the version for PyTorch {torch.__version__}",
            "install torch and torchvision together, from one index",
        ) from error
    return tv_tensors


class VisionDataset(RecordDataset[T]):
    """A data set whose samples are (image, target); each kind reads its own target.

    Raises:
        UsageError: records are not what ``open`` gives, transforms are no function, or torchvision
            is missing.
    """

    def __init__(self, records: RecordSequence, transforms: Transforms | None) -> None:
        super().__init__(records)
        name = type(self).__name__
        if transforms is not None and not callable(transforms):
            raise UsageError(
                f"{name}(transforms={shown(transforms)})",
                "expected a function that takes an image and its target, and returns both",
            )
        self.transforms = transforms
        import_tv_tensors(name)

    def _read_image(self, record: Record) -> Any:
        """The pixels of a record as tv_tensors.Image:
        uint8 of the shape (3, height, width) in RGB.
        """
        tv_tensors = import_tv_tensors(type(self).__name__)
        return tv_tensors.Image(torch.from_numpy(record.array()).permute(2, 0, 1))

    def _transform(self, image: Any, target: Any) -> tuple[Any, Any]:
        if self.transforms is None:
            return image, target
        changed = self.transforms(image, target)
        is_sequence = isinstance(changed, tuple | list)
        if not is_sequence or len(changed) != 2:
            result = f"one {type(changed).__name__}"
            if changed is None:
                result = "nothing"
            if is_sequence:
                result += f" of {number_of(len(changed), 'value')}"
            raise UsageError(
                f"{type(self).__name__}(transforms={shown(self.transforms)}) gave {result}",
                "expected the image and its target",
                "return both from this function: return image, target",
            )
        return changed[0], changed[1]
