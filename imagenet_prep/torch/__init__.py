"""PyTorch: ImageDataset gives pixels and labels; Loader shuffles them, divides them among ranks, and resumes."""

import importlib.util

if importlib.util.find_spec("torch") is None:
    raise ModuleNotFoundError("imagenet_prep.torch needs PyTorch: pip install 'imagenet-prep[torch]'", name="torch")

from imagenet_prep.torch.crops import CenterCrop, Crop, RandomResizedCrop
from imagenet_prep.torch.image_dataset import ImageDataset
from imagenet_prep.torch.loader import Loader

__all__ = ["CenterCrop", "Crop", "ImageDataset", "Loader", "RandomResizedCrop"]
