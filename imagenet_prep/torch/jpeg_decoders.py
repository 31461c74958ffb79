"""JpegDecoder: decodes a list of JPEGs on a device: by torchcodec or torchvision on a GPU, by simplejpeg on a CPU."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence

import torch

from imagenet_prep.errors import UsageError
from imagenet_prep.images.jpeg import HUFFMAN, EOI, SOS, ImageError, is_frame
from imagenet_prep.images.pixels import decode_array

Decode = Callable[[list[torch.Tensor], torch.device], list[torch.Tensor]]

_TURNED = re.compile(rb"Exif\0\0")
_APP1, _APP14 = 0xE1, 0xEE


def is_plain(data: memoryview) -> bool:
    """Whether a JPEG is one that every decoder decodes alike.

    It is baseline, grey or YCbCr, has no EXIF data (torchcodec would turn it), and ends as it should.
    """
    if data[-2:] != b"\xff\xd9":
        return False
    position, end = 2, len(data)
    while position + 10 <= end and data[position] == 0xFF:
        marker = data[position + 1]
        if is_frame(marker) and (marker not in HUFFMAN or data[position + 9] not in (1, 3)):
            return False
        if marker in (_APP1, _APP14, EOI):
            return False  # TODO: APP14 with transform 1, APP1 without orientation
        if marker == SOS:
            return True
        position += 2 + (data[position + 2] << 8 | data[position + 3])
    return False


class JpegDecoder:
    """Decodes lists of JPEGs to RGB; threads may share it, each with its own stream."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._decode = find_decoder() if device.type == "cuda" else None

    def decode(self, images: Sequence[memoryview]) -> list[torch.Tensor | None]:
        """Pixels of each, uint8 of the shape (3, height, width); None if it can't be decoded."""
        if self._decode is None:
            return [_decode_on_cpu(image) for image in images]
        stream = torch.cuda.current_stream(self.device)
        stream.synchronize()  # nvJPEG writes to memory that kernels of this stream may still read
        with warnings.catch_warnings():  # TODO: not thread-safe; filter once
            warnings.simplefilter("ignore")
            sources = [torch.frombuffer(image, dtype=torch.uint8) for image in images]
        try:
            return [*self._decode(sources, self.device)]
        except RuntimeError:  # one image fails the call, without a word on which
            return [self._decode_one(source) for source in sources]

    def _decode_one(self, source: torch.Tensor) -> torch.Tensor | None:
        assert self._decode is not None
        try:
            return self._decode([source], self.device)[0]
        except torch.OutOfMemoryError:
            raise
        except RuntimeError:
            return None


def find_decoder() -> Decode:
    """torchcodec's decoder, or torchvision's.

    Raises:
        UsageError: neither is there.
    """
    try:
        from torchcodec.decoders import decode_jpeg

        return lambda sources, device: decode_jpeg(sources, mode="RGB", device=device)
    except (ImportError, RuntimeError, OSError):
        pass
    try:
        from torchvision.io import ImageReadMode
        from torchvision.io import decode_jpeg as decode_by_torchvision

        return lambda sources, device: decode_by_torchvision(sources, mode=ImageReadMode.RGB, device=device)
    except (ImportError, RuntimeError, OSError):
        pass
    raise UsageError('Loader(decode="cuda")', "expected torchcodec 0.16 or later", "pip install torchcodec")


def _decode_on_cpu(image: memoryview) -> torch.Tensor | None:
    try:
        return torch.from_numpy(decode_array(image)).permute(2, 0, 1)
    except ImageError:
        return None
