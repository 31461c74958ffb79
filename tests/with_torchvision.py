"""torchvision, though PyTorch has no CUDA and the wheel of torchvision was built for it."""

from __future__ import annotations

import importlib
from typing import Any

_KEPT: list[Any] = []
"""What must live as long as torchvision."""


def import_torchvision() -> Any:
    """torchvision; beside a torch without CUDA, the wheel for CUDA can't load its compiled operators.

    No transform needs them, but the import declares how two of them behave: so they are named then.
    """
    try:
        return importlib.import_module("torchvision")
    except RuntimeError:  # operator torchvision::nms does not exist
        import torch

        library = torch.library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _KEPT.append(library)
        return importlib.import_module("torchvision")
