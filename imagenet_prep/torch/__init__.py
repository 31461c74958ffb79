"""PyTorch: ImageDataset gives pixels and labels; Loader shuffles them, divides them among ranks, and resumes."""

import importlib.util

if importlib.util.find_spec("torch") is None:
    raise ModuleNotFoundError("imagenet_prep.torch needs PyTorch: pip install 'imagenet-prep[torch]'", name="torch")

from imagenet_prep.torch.images import CenterCrop, Crop, ImageDataset, RandomResizedCrop
from imagenet_prep.torch.loader import Loader

__all__ = ["CenterCrop", "Crop", "ImageDataset", "Loader", "RandomResizedCrop"]
