"""PyTorch: data sets of images, objects or masks;
Loader shuffles them, divides them among ranks, and resumes.
"""

import importlib.util

if importlib.util.find_spec("torch") is None:
    from imagenet_prep.hints import install_extra

    needs = f"imagenet_prep.torch needs PyTorch: {install_extra('torch')}"
    raise ModuleNotFoundError(needs, name="torch")

from imagenet_prep.torch.crops import CenterCrop, Crop, RandomResizedCrop
from imagenet_prep.torch.detection import DetectionDataset, collate_detection
from imagenet_prep.torch.image_dataset import ImageDataset
from imagenet_prep.torch.loader import Loader
from imagenet_prep.torch.segmentation import SegmentationDataset

__all__ = [
    "CenterCrop",
    "Crop",
    "DetectionDataset",
    "ImageDataset",
    "Loader",
    "RandomResizedCrop",
    "SegmentationDataset",
    "collate_detection",
]
