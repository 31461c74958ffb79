"""DeviceBatches: batches of images that a GPU decodes, cuts, resizes and normalises, made by threads of this process.

On the device "cpu" the same steps run there: so they are tested without a GPU.
"""

from __future__ import annotations

import hashlib
import threading
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from imagenet_prep.errors import DamagedRecordError, InputError
from imagenet_prep.images import format_of
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.images.parts import Cutout, ImagePart
from imagenet_prep.images.pixels import read_facts
from imagenet_prep.reading.left_out import with_choice
from imagenet_prep.reading.shard import Record
from imagenet_prep.torch.batches import Damaged, ItemNumber, LoadedBatch, own_random_numbers, portable, seed_all
from imagenet_prep.torch.crops import CenterCrop, Crop, RandomResizedCrop
from imagenet_prep.torch.image_dataset import ImageDataset
from imagenet_prep.torch.jpeg_decoders import JpegDecoder, is_plain

AHEAD = 1
"""Batches that are ready before they are requested, besides one of each thread."""

SAMPLE = 64
"""One image of so many is also decoded on the CPU, and compared."""

MOST_GAP = 12.0
"""Levels by which decoders may differ on average: they interpolate colours differently."""


@dataclass(frozen=True)
class OutputSettings:
    """What becomes of the pixels: mean and std of each channel in a range from 0 to 1, or neither; dtype; layout."""

    normalize: tuple[Sequence[float], Sequence[float]] | None = None
    dtype: torch.dtype = torch.uint8
    channels_last: bool = False

    @property
    def factors(self) -> tuple[list[float], list[float]]:
        """By channel: what a level is multiplied by, and what is subtracted then."""
        if not self.dtype.is_floating_point:
            return [1.0] * 3, [0.0] * 3
        mean, std = self.normalize or ((0.0,) * 3, (1.0,) * 3)
        return [1 / (255 * one) for one in std], [middle / one for middle, one in zip(mean, std, strict=True)]

    def empty(self, count: int, size: int, device: torch.device) -> torch.Tensor:
        """The batch, not filled."""
        layout = torch.channels_last if self.channels_last else torch.contiguous_format
        return torch.empty((count, 3, size, size), dtype=self.dtype, device=device, memory_format=layout)


@dataclass
class Draft:
    """An image of a batch before its pixels are resized: its record, label, size, part, and the pixels."""

    record: Record
    label: int
    height: int
    width: int
    part: ImagePart
    is_mirrored: bool
    pixels: torch.Tensor | None = None  # uint8 of the shape (3, height, width), with any strides

    def take(self, resized: torch.Tensor) -> None:
        """Take pixels that are resized and mirrored already."""
        self.pixels = resized
        self.part, self.is_mirrored = ImagePart(0, 0, *resized.shape[1:]), False


class DeviceBatches:
    """Makes batches ``[images, labels]`` of a data set on a device; two or three of them are ready ahead.

    Args:
        dataset: images with a crop, and without a transform.
        device: where images are decoded.
        seed: the Loader's.
        skips: leave damaged records out.
        output: what becomes of the pixels.
        threads: how many make batches, each one of them.
    """

    def __init__(
        self, dataset: ImageDataset, device: torch.device, *, seed: int, skips: bool, output: OutputSettings, threads: int
    ) -> None:
        assert dataset.crop is not None
        self.crop: Crop = dataset.crop
        self.decoded = Counter[str]()  # images by "gpu", "cpu"
        self._dataset, self._device, self._output = dataset, device, output
        self._seed, self._skips, self._threads = seed, skips, max(1, threads)
        self._decoder = JpegDecoder(device)
        self._own = threading.local()
        self._lock = threading.Lock()

    def batches(self, numbers: Iterable[Sequence[ItemNumber]]) -> Iterator[LoadedBatch]:
        """The batches of these records, in order. The stream that is current then may use them."""
        waiting: deque[Future[tuple[LoadedBatch, Any]]] = deque()
        with ThreadPoolExecutor(self._threads, "imagenet-prep") as pool:
            try:
                for batch in numbers:
                    waiting.append(pool.submit(self._make, batch))
                    if len(waiting) > self._threads + AHEAD:
                        yield self._handed_over(waiting.popleft())
                while waiting:
                    yield self._handed_over(waiting.popleft())
            finally:
                for future in waiting:
                    future.cancel()

    def _handed_over(self, future: Future[tuple[LoadedBatch, Any]]) -> LoadedBatch:
        loaded, event = future.result()
        if event is not None:
            stream = torch.cuda.current_stream(self._device)
            stream.wait_event(event)
            for tensor in loaded.batch:
                tensor.record_stream(stream)
        return loaded

    def _make(self, numbers: Sequence[ItemNumber]) -> tuple[LoadedBatch, Any]:
        """A batch, or its error, and the event after which it is complete."""
        batch_number = numbers[0].batch or 0
        drafts: list[Draft] = []
        damaged: list[Damaged] = []
        batch = event = error = None
        try:
            if self._device.type == "cuda":
                torch.cuda.set_device(self._device)
            with torch.cuda.stream(self._stream()):
                for number in numbers:
                    self._draft(number, drafts, damaged)
                self._decode(drafts)
                if drafts:
                    batch, event = self._finish(drafts)
        except Exception as failure:  # noqa: BLE001 - the Loader raises it
            error = portable(failure)
        return LoadedBatch(batch_number, batch, damaged, error), event

    def _stream(self) -> Any:
        """The stream of this thread; None on a CPU."""
        if self._device.type != "cuda":
            return None
        if not hasattr(self._own, "stream"):
            self._own.stream = torch.cuda.Stream(self._device)
        return self._own.stream

    # each image ---------------------------------------------------------------------------------------------------

    def _draft(self, number: ItemNumber, drafts: list[Draft], damaged: list[Damaged]) -> None:
        """Read a record, and draw its part; add it to either list."""
        try:
            record = self._dataset.records[int(number)]
            drafts.append(self._drawn(record, number))
        except DamagedRecordError as error:
            if not self._skips:
                raise with_choice(error) from error
            damaged.append(Damaged(int(number), error.fault, error.in_short))

    def _drawn(self, record: Record, number: ItemNumber) -> Draft:
        label = self._dataset.label(record)
        try:
            facts = read_facts(record.encoded)
        except ImageError:
            record.cutout(self.crop.choose, self.crop.size)  # raises the error that names the record
            raise
        part, is_mirrored = self._draw(f"{self._seed} {number.epoch} {int(number)}", facts.height, facts.width)
        draft = Draft(record, label, facts.height, facts.width, part, is_mirrored)
        if facts.kind != "JPEG" or not is_plain(record.encoded):
            self._decode_on_cpu(draft)
        return draft

    def _draw(self, text: str, height: int, width: int) -> tuple[ImagePart, bool]:
        """The part that workers draw for the same text."""
        crop = self.crop
        if type(crop) is RandomResizedCrop:
            generator = self._generator(text)
            return crop.choose(height, width, generator), crop.draw_flip(generator)
        if type(crop) is CenterCrop:
            return crop.choose(height, width), False
        with self._lock, own_random_numbers():  # a crop of the user's own takes random numbers from anywhere
            seed_all(text)
            chosen = crop.choose(height, width)
            part = chosen if isinstance(chosen, ImagePart) else ImagePart(*chosen)
            return part, crop.draw_flip()

    def _generator(self, text: str) -> torch.Generator:
        if not hasattr(self._own, "generator"):
            self._own.generator = torch.Generator()
        seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
        generator: torch.Generator = self._own.generator
        return generator.manual_seed(seed)

    # decoding -----------------------------------------------------------------------------------------------------

    def _decode(self, drafts: list[Draft]) -> None:
        """Decode all drafts without pixels in one call; those that it can't, on the CPU."""
        plain = [draft for draft in drafts if draft.pixels is None]
        if not plain:
            return
        images = self._decoder.decode([draft.record.encoded for draft in plain])
        for draft, image in zip(plain, images, strict=True):
            if image is None or image.shape != (3, draft.height, draft.width):
                self._decode_on_cpu(draft)
            else:
                draft.pixels = image
                self.decoded["gpu" if image.is_cuda else "cpu"] += 1
        # TODO: compare a sample with the CPU (SAMPLE, MOST_GAP)

    def _decode_on_cpu(self, draft: Draft) -> None:
        """Decode, resize and mirror an image as a worker does."""
        cutout = draft.record.cutout(lambda _height, _width: draft.part, self.crop.size)
        resized = self.crop.resized(cutout)
        draft.take((resized.flip(-1) if draft.is_mirrored else resized).to(self._device))
        self.decoded["cpu"] += 1

    # the batch ----------------------------------------------------------------------------------------------------

    def _finish(self, drafts: list[Draft]) -> tuple[list[torch.Tensor], Any]:
        """Images and labels of a batch on the device, and the event after which they are complete."""
        images = self._output.empty(len(drafts), self.crop.size, self._device)
        labels = torch.tensor([draft.label for draft in drafts])
        if self._device.type != "cuda":
            self._resize_on_cpu(drafts, images)
            return [images, labels], None
        self._resize_on_gpu(drafts, images)
        labels = labels.pin_memory().to(self._device, non_blocking=True)
        event = torch.cuda.Event()
        event.record()
        return [images, labels], event

    def _resize_on_gpu(self, drafts: list[Draft], images: torch.Tensor) -> None:
        from imagenet_prep.torch.triton_resize import BLOCK, resize_parts

        size = self.crop.size
        places = np.array([_place(draft) for draft in drafts], np.int64)
        parts = np.array([draft.part[:4] for draft in drafts], np.float32)
        scale, shift = self._output.factors
        resize_parts[(len(drafts), -(-size * size // BLOCK))](
            torch.from_numpy(places).pin_memory().to(self._device, non_blocking=True),
            torch.from_numpy(parts).pin_memory().to(self._device, non_blocking=True),
            images,
            *images.stride(),
            *scale,
            *shift,
            SIZE=size,
            IS_FLOAT=images.dtype.is_floating_point,
            BLOCK=BLOCK,
        )

    def _resize_on_cpu(self, drafts: list[Draft], images: torch.Tensor) -> None:
        """The same on a CPU, an image at a time."""
        scale, shift = (torch.tensor(values)[:, None, None] for values in self._output.factors)
        for image, draft in zip(images, drafts, strict=True):
            assert draft.pixels is not None
            resized = self.crop.resized(_cut(draft))
            resized = resized.flip(-1) if draft.is_mirrored else resized
            image.copy_(resized * scale - shift if image.is_floating_point() else resized)


def _span(first: float, extent: float, limit: int, *, is_cut: bool) -> tuple[int, int]:
    """The first and the last row or column that count."""
    if not is_cut:
        return 0, limit - 1
    return int(first), min(limit, int(np.ceil(first + extent))) - 1


def _place(draft: Draft) -> tuple[int, ...]:
    """The row of a draft in the kernel's table."""
    pixels, part = draft.pixels, draft.part
    assert pixels is not None
    rows = _span(part.top, part.height, pixels.shape[1], is_cut=part.is_cut)
    columns = _span(part.left, part.width, pixels.shape[2], is_cut=part.is_cut)
    return (pixels.data_ptr(), *pixels.stride(), *rows, *columns, int(draft.is_mirrored))


def _cut(draft: Draft) -> Cutout:
    """The pixels of a draft that count, and the box of the part within them."""
    assert draft.pixels is not None
    part = draft.part
    (top, bottom), (left, right) = (
        _span(first, extent, limit, is_cut=part.is_cut)
        for first, extent, limit in zip(part[:2], part[2:4], draft.pixels.shape[1:], strict=True)
    )
    pixels = draft.pixels[:, top : bottom + 1, left : right + 1].permute(1, 2, 0).contiguous().numpy()
    x, y = part.left - left, part.top - top
    return Cutout(pixels, (x, y, x + part.width, y + part.height))


__all__ = ["DeviceBatches", "OutputSettings"]
_ = functional, format_of, InputError  # draft
