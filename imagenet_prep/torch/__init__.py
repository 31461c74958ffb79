"""PyTorch: ImageDataset gives pixels and labels, Loader shuffles them, divides them among ranks, and resumes."""

from imagenet_prep.torch.image_dataset import ImageDataset
from imagenet_prep.torch.loader import Loader

__all__ = ["ImageDataset", "Loader"]
