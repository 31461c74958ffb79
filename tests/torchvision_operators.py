"""import_torchvision: torchvision, also where the wheel for CUDA is beside a torch without it and
can't load operators.

Transforms need no operator. Detection models need two, nms and roi_align: both are here in plain
PyTorch.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

_KEPT: list[Any] = []
"""What must live as long as torchvision."""


def import_torchvision() -> Any:
    """torchvision with its own operators; if they don't load, with those of this module."""
    try:
        return importlib.import_module("torchvision")
    except RuntimeError:  # operator torchvision::nms does not exist
        import torch

        library = torch.library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        library.impl("nms", suppress, "CPU")
        _KEPT.append(library)
        torchvision = importlib.import_module("torchvision")
        _replace_operators()
        return torchvision


def _replace_operators() -> None:
    boxes, align = (sys.modules[f"torchvision.ops.{name}"] for name in ("boxes", "roi_align"))
    boxes._assert_has_ops = lambda: None
    align._roi_align = (
        pool  # torchvision's own in Python is compiled first, or takes ten times as long
    )


def suppress(boxes: Any, scores: Any, threshold: float) -> Any:
    """The numbers of the boxes that no better one overlaps by more than the threshold,
    the best first.
    """
    import torch
    from torchvision.ops import box_iou

    order = scores.argsort(descending=True, stable=True)
    overlaps = (box_iou(boxes[order], boxes[order]) > threshold).numpy()
    is_kept = [True] * len(order)
    for number in range(len(order)):
        if is_kept[number]:
            for other in overlaps[number, number + 1 :].nonzero()[0]:
                is_kept[number + 1 + other] = False
    return order[torch.tensor(is_kept, dtype=torch.bool)]


def pool(
    features: Any, rois: Any, scale: float, height: int, width: int, samples: int, aligned: bool
) -> Any:
    """The mean of samples x samples points in each of height x width parts of each box, as
    ``roi_align`` has it.

    ``rois`` are the number of the image, and xmin, ymin, xmax, ymax: boxes inside their image.
    """
    import torch
    from torch.nn import functional

    assert samples > 0
    assert not aligned
    sides = torch.tensor(features.shape[:1:-1], dtype=rois.dtype)  # width and height
    starts, ends = (rois[:, 1:] * scale).split(2, dim=1)
    spans = (ends - starts).clamp(min=1)
    points = [
        (torch.arange(count * samples) + 0.5) / (count * samples) for count in (width, height)
    ]
    x, y = (starts[:, [axis]] + spans[:, [axis]] * points[axis] for axis in (0, 1))
    shape = len(rois), len(points[1]), len(points[0])
    grid = (
        torch.stack([x[:, None, :].expand(shape), y[:, :, None].expand(shape)], dim=3)
        * 2
        / (sides - 1)
        - 1
    )
    pooled = features.new_zeros(len(rois), features.shape[1], height, width)
    for number in range(len(features)):
        chosen = (rois[:, 0] == number).nonzero()[:, 0]
        rows = grid[chosen].reshape(1, -1, shape[2], 2)
        values = functional.grid_sample(
            features[[number]], rows, padding_mode="border", align_corners=True
        )
        parts = values[0].reshape(-1, len(chosen), *shape[1:]).transpose(0, 1)
        pooled = pooled.index_copy(0, chosen, functional.avg_pool2d(parts, samples))
    return pooled
