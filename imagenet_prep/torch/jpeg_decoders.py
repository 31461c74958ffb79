"""JpegDecoder: decodes a list of JPEGs on a device:
by torchcodec or torchvision on a GPU, by simplejpeg on a CPU.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from imagenet_prep.errors import UsageError
from imagenet_prep.hints import install_extra
from imagenet_prep.images.jpeg import FREE_PIXELS, HUFFMAN, SOS, ImageError, is_frame
from imagenet_prep.images.pixels import decode_array

ListDecoder = Callable[[list[torch.Tensor], torch.device], list[torch.Tensor]]

_APP1, _APP14, _PROGRESSIVE = 0xE1, 0xEE, 0xC2
# the markers that a length follows
_SEGMENTS = frozenset(range(0xC0, 0xFF)) - frozenset(range(0xD0, 0xDA))
_START, _END = b"\xff\xd8", b"\xff\xd9"
_EXIF, _ADOBE = b"Exif\0\0", b"Adobe"
_USUAL_SAMPLING = (b"\x11\x11\x11", b"\x21\x11\x11", b"\x22\x11\x11")  # 4:4:4, 4:2:2, 4:2:0


class PlainJpeg(NamedTuple):
    """A JPEG that a GPU decodes as a CPU does, and its size in pixels."""

    content: memoryview
    height: int
    width: int


def plain_jpeg(data: memoryview) -> PlainJpeg | None:
    """A JPEG that a GPU decodes as a CPU does; None of any other file.

    It is grey or YCbCr, of a usual sampling and size, and ends as it should. It lacks EXIF data:
    torchcodec would turn it.
    """
    height = width = 0
    is_usual = data[:2] == _START and data[-2:] == _END
    position = 2
    while is_usual and position + 20 < len(data) and data[position] == 0xFF:
        marker = data[position + 1]
        if marker == SOS:
            return PlainJpeg(data, height, width) if height else None
        if is_frame(marker):
            frame = bytes(data[position : position + 20])
            height = frame[5] << 8 | frame[6]
            width = frame[7] << 8 | frame[8]
            is_usual = _is_usual_frame(marker, frame) and 0 < height * width <= FREE_PIXELS
        elif marker == _APP14 and data[position + 4 : position + 9] == _ADOBE:
            is_usual = data[position + 15] == 1  # otherwise RGB, or CMYK
        elif marker == _APP1 and data[position + 4 : position + 10] == _EXIF:
            data = _hide_exif(data, position + 4)
        elif marker not in _SEGMENTS:
            return None
        position += 2 + (data[position + 2] << 8 | data[position + 3])
    return None


def _hide_exif(data: memoryview, position: int) -> memoryview:
    """A copy of a JPEG whose EXIF data, at this position, no reader recognizes."""
    copy = bytearray(data)
    copy[position : position + 4] = bytes(4)
    return memoryview(copy)


def _is_usual_frame(marker: int, frame: bytes) -> bool:
    """Whether a frame, T.81 B.2.2, is Huffman-coded, of 8 bits,
    and grey or YCbCr of a usual sampling.
    """
    bits, components = frame[4], frame[9]
    if marker not in (*HUFFMAN, _PROGRESSIVE) or bits != 8:
        return False
    names, sampling = frame[10:19:3], frame[11:19:3]
    is_colour = components == 3 and names != b"RGB" and sampling in _USUAL_SAMPLING
    return components == 1 or is_colour


class JpegDecoder:
    """Decodes lists of JPEGs to RGB; threads may share it, each with a stream of its own.

    Raises:
        UsageError: nothing here decodes JPEGs on a GPU.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._decode = find_list_decoder() if device.type == "cuda" else None
        with warnings.catch_warnings():  # PyTorch warns once that bytes can't be written
            warnings.simplefilter("ignore")
            torch.frombuffer(b"0", dtype=torch.uint8)

    def decode(self, images: Sequence[memoryview]) -> list[torch.Tensor | None]:
        """The pixels of each, uint8 of the shape (3, height, width);
        None if it can't be decoded.
        """
        if self._decode is None:
            return [_decode_on_cpu(image) for image in images]
        # nvJPEG writes at once to memory that kernels of this stream may still read
        torch.cuda.current_stream(self.device).synchronize()
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


def _decode_on_cpu(image: memoryview) -> torch.Tensor | None:
    try:
        return torch.from_numpy(decode_array(image)).permute(2, 0, 1)
    except ImageError:
        return None


def find_list_decoder() -> ListDecoder:
    """torchcodec's, or torchvision's.

    Raises:
        UsageError: neither can be imported.
    """
    reasons: list[str] = []
    decoders = {"torchcodec": torchcodec_decoder, "torchvision": torchvision_decoder}
    for name, find in decoders.items():
        try:
            return find()
        except (ImportError, RuntimeError, OSError) as error:  # the last two: of another PyTorch
            first_line, *_ = str(error).splitlines() or [type(error).__name__]
            reasons.append(f"{name}: {first_line}")
    raise UsageError(
        "neither torchcodec nor torchvision can be used to decode JPEGs on a GPU",
        f"expected torchcodec 0.16 or newer, made for this PyTorch; found: {'; '.join(reasons)}",
        install_extra("gpu"),
    )


def torchcodec_decoder() -> ListDecoder:
    """nvJPEG by torchcodec."""
    from torchcodec.decoders import decode_jpeg

    return lambda sources, device: decode_jpeg(sources, mode="RGB", device=device)


def torchvision_decoder() -> ListDecoder:
    """nvJPEG by torchvision: one batch at a time, whatever the number of threads."""
    from torchvision.io import ImageReadMode, decode_jpeg

    return lambda sources, device: decode_jpeg(sources, mode=ImageReadMode.RGB, device=device)
