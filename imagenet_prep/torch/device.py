"""DeviceBatches: batches of images that a GPU decodes, cuts, resizes and normalises, made by
threads of this process.

On the device "cpu" the same steps run there: so they are tested without a GPU.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from imagenet_prep.errors import DamagedRecordError, InputError
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.images.parts import ImagePart, cut_out, refuse_outside
from imagenet_prep.images.pixels import decode_array, read_facts
from imagenet_prep.reading.left_out import with_choice
from imagenet_prep.reading.record import Record
from imagenet_prep.torch.batches import (
    BatchCollate,
    BatchItems,
    Damaged,
    ItemNumber,
    LoadedBatch,
    Seeded,
    own_random_numbers,
    portable,
    seed_all,
    seed_of,
)
from imagenet_prep.torch.crop_draws import Draw, draw_parts
from imagenet_prep.torch.crops import CenterCrop, RandomResizedCrop
from imagenet_prep.torch.device_settings import images_within
from imagenet_prep.torch.jpeg_decoders import JpegDecoder, plain_jpeg

AHEAD = 1
"""Batches that are ready before they are requested, more than one of each thread."""

COMPARED = 16
"""The CPU also decodes an image of one batch in so many, to compare."""

MOST_APART = 16.0
"""Levels by which decoders may differ on average:
they interpolate colours differently, by one or two.
"""

_IDLE: dict[torch.device, list[Any]] = defaultdict(list)
"""Streams that no thread uses now; each keeps memory that was freed in it."""

_LAUNCHING = threading.Lock()
"""Held while the kernel is launched: the first launch compiles it."""


_NOTHING = ImagePart(0, 0, 0, 0)


@dataclass
class Draft:
    """An image of a batch before it is resized: its record, label and size;
    then its part, and its pixels.
    """

    number: ItemNumber
    record: Record
    label: int
    height: int
    width: int
    plain: memoryview | None = None  # what the device can decode
    part: ImagePart = _NOTHING
    is_mirrored: bool = False
    pixels: torch.Tensor | None = None  # uint8 of the shape (3, height, width), with any strides


class DeviceBatch(NamedTuple):
    """A batch for the Loader, the event after which it is complete,
    and how many images "gpu" and "cpu" decoded.
    """

    loaded: LoadedBatch
    event: Any
    decoded: Counter[str]


class DeviceBatches:
    """Makes batches ``[images, labels]`` on a device, some of them ahead.

    Args:
        seeded: images with a crop and without a transform, and the Loader's settings.
        collate: gets ``[images, labels]``, in the thread that takes the batches.
        threads: how many make batches, each one of them; 0: the thread that takes them.
        decoded: counts images by what decoded them, "gpu" or "cpu".
    """

    def __init__(
        self, seeded: Seeded, collate: BatchCollate, threads: int, decoded: Counter[str]
    ) -> None:
        self._images, self._numbers = images_within(seeded.dataset)
        assert self._images.crop is not None
        assert seeded.settings.device is not None
        self._crop = self._images.crop
        self._output = seeded.settings.device
        self._seed = seeded.settings.seed
        self._skips = seeded.settings.skips
        self._collate = collate
        self._counts = decoded
        # a crop of the user's own takes random numbers from anywhere: a thread of its own would
        # disturb others
        self._threads = threads if type(self._crop) in (RandomResizedCrop, CenterCrop) else 0
        self._device = self._output.device
        if self._device.type == "cuda" and self._device.index is None:
            self._device = torch.device("cuda", torch.cuda.current_device())
        self._decoder = JpegDecoder(self._device)

    def batches(self, numbers: Iterable[Sequence[ItemNumber]]) -> Iterator[LoadedBatch]:
        """The batches of these records, in order. The stream that is current then may use them."""
        if not self._threads:
            for batch in numbers:
                yield self._handed_over(self._make(batch), batch)
            return
        waiting: deque[tuple[Future[DeviceBatch], Sequence[ItemNumber]]] = deque()
        with ThreadPoolExecutor(self._threads, "imagenet-prep") as pool:
            try:
                for batch in numbers:
                    waiting.append((pool.submit(self._make, batch), batch))
                    if len(waiting) > self._threads + AHEAD:
                        future, oldest = waiting.popleft()
                        yield self._handed_over(future.result(), oldest)
                while waiting:
                    future, oldest = waiting.popleft()
                    yield self._handed_over(future.result(), oldest)
            finally:
                for future, _ in waiting:
                    future.cancel()

    def _handed_over(self, batch: DeviceBatch, numbers: Sequence[ItemNumber]) -> LoadedBatch:
        """The batch for the current stream, as the collate function returns it."""
        loaded, event, decoded = batch
        self._counts.update(decoded)
        if loaded.batch is None:
            return loaded
        if event is not None:
            stream = torch.cuda.current_stream(self._device)
            stream.wait_event(event)
            for tensor in loaded.batch:
                tensor.record_stream(stream)
        items = BatchItems(loaded.batch)
        items.numbers = numbers
        items.seed = self._seed
        collated: LoadedBatch = self._collate(items)
        return collated._replace(damaged=loaded.damaged)

    def _make(self, numbers: Sequence[ItemNumber]) -> DeviceBatch:
        """The batch of these records, or its error."""
        number = numbers[0].batch or 0
        batch = event = error = None
        damaged: list[Damaged] = []
        decoded = Counter[str]()
        try:
            with own_stream(self._device):
                drafts = self._drafts(numbers, damaged)
                self._decode(drafts, decoded)
                if number % COMPARED == 0 and self._device.type == "cuda":
                    self._compare(drafts)
                drafts = self._decode_rest(drafts, damaged, decoded)
                if drafts:
                    batch, event = self._finish(drafts)
        except Exception as failure:  # noqa: BLE001 - the Loader raises it
            error = portable(failure)
        return DeviceBatch(LoadedBatch(number, batch, damaged, error), event, decoded)

    # records and their parts ----------------------------------------------------------------------

    def _drafts(self, numbers: Sequence[ItemNumber], damaged: list[Damaged]) -> list[Draft]:
        """A draft of each record that can be read, with its part."""
        drafts: list[Draft] = []
        for number in numbers:
            with self._set_aside(number, damaged):
                drafts.append(self._draft(number))
        for draft, drawn in zip(drafts, self._draw(drafts), strict=True):
            draft.part, draft.is_mirrored = drawn
        return drafts

    @contextmanager
    def _set_aside(self, number: ItemNumber, damaged: list[Damaged]) -> Iterator[None]:
        """Note a damaged record, or raise its error with the choice that a Loader has."""
        try:
            yield
        except DamagedRecordError as error:
            if not self._skips:
                raise with_choice(error, "Loader") from error
            damaged.append(Damaged(int(number), error.fault, error.in_short))

    def _draft(self, number: ItemNumber) -> Draft:
        number_in_set = number if self._numbers is None else self._numbers[number]
        record = self._images.records[int(number_in_set)]
        label = self._images.label(record)
        plain = plain_jpeg(record.encoded)
        if plain is not None:
            return Draft(number, record, label, plain.height, plain.width, plain.content)
        try:
            facts = read_facts(record.encoded)
        except ImageError as error:
            raise record.damaged_image(
                error, f"{record.place}: its image can't be decoded"
            ) from error
        return Draft(number, record, label, facts.height, facts.width)

    def _draw(self, drafts: Sequence[Draft]) -> list[Draw]:
        """The parts that workers draw: without PyTorch's own random numbers,
        which the thread that trains may use.
        """
        crop = self._crop
        texts = [f"{self._seed} {draft.number.epoch} {int(draft.number)}" for draft in drafts]
        sizes = [(draft.height, draft.width) for draft in drafts]
        if type(crop) is RandomResizedCrop and drafts:
            seeds = [seed_of(text) for text in texts]
            return draw_parts(crop, seeds, sizes)
        if type(crop) is CenterCrop:
            return [(crop.choose(*size), False) for size in sizes]
        draws: list[Draw] = []
        for text, (height, width) in zip(texts, sizes, strict=True):
            draw = self._draw_as_workers(text, height, width)
            draws.append(draw)
        return draws

    def _draw_as_workers(self, text: str, height: int, width: int) -> Draw:
        with own_random_numbers():
            seed_all(text)
            part = ImagePart(*self._crop.choose(height, width))
            is_mirrored = self._crop.draw_flip()
        refuse_outside(part, height, width)
        return part, is_mirrored

    # decoding -------------------------------------------------------------------------------------

    def _decode(self, drafts: Sequence[Draft], decoded: Counter[str]) -> None:
        """Decode all that the device can, in one call."""
        drafts_with_jpeg: list[Draft] = []
        jpegs: list[memoryview] = []
        for draft in drafts:
            if draft.plain is not None:
                drafts_with_jpeg.append(draft)
                jpegs.append(draft.plain)
        if not jpegs:
            return
        images = self._decoder.decode(jpegs)
        for draft, image in zip(drafts_with_jpeg, images, strict=True):
            if image is not None and image.shape == (3, draft.height, draft.width):
                draft.pixels = image
                decoder = "gpu" if image.is_cuda else "cpu"
                decoded[decoder] += 1

    def _compare(self, drafts: Sequence[Draft]) -> None:
        """Raise InputError if the device decoded an image to other pixels than the CPU;
        damaged ones lose theirs.
        """
        draft = next((draft for draft in drafts if draft.pixels is not None), None)
        if draft is None or draft.pixels is None:
            return
        try:
            decoded_by_cpu = decode_array(draft.record.encoded)
        except ImageError:
            draft.pixels = None  # the CPU says what is wrong
            return
        expected = torch.from_numpy(decoded_by_cpu).permute(2, 0, 1)
        differences = draft.pixels.float() - expected.to(self._device).float()
        apart = differences.abs().mean().item()
        if apart > MOST_APART:
            place = draft.record.place
            raise InputError(
                f"{place}: {self._device} decodes its image to other pixels than the CPU",
                f"expected a difference of at most {MOST_APART:.0f} of 255 per value on average, "
                f"got {apart:.1f}",
                "leave out decode=...: worker processes then decode on the CPU; and report it as a "
                "bug of imagenet-prep",
            )

    def _decode_rest(
        self, drafts: Sequence[Draft], damaged: list[Damaged], decoded: Counter[str]
    ) -> list[Draft]:
        """The drafts with their pixels: those without are decoded,
        resized and mirrored as a worker does.
        """
        complete = []
        for draft in drafts:
            with self._set_aside(draft.number, damaged):
                if draft.pixels is None:
                    self._decode_as_workers(draft)
                    decoded["cpu"] += 1
                complete.append(draft)
        return complete

    def _decode_as_workers(self, draft: Draft) -> None:
        size = self._crop.size
        part = draft.part
        cutout = draft.record.cutout(lambda *_: part, size)
        resized = self._crop.resized(cutout)
        if draft.is_mirrored:
            resized = resized.flip(-1)
        draft.pixels = resized.to(self._device)
        draft.part = ImagePart(0, 0, size, size)
        draft.is_mirrored = False

    # the batch ------------------------------------------------------------------------------------

    def _finish(self, drafts: Sequence[Draft]) -> tuple[list[torch.Tensor], Any]:
        """Images and labels of a batch on the device,
        and the event after which they are complete.
        """
        images = self._output.empty(len(drafts), self._crop.size, self._device)
        labels = torch.tensor([draft.label for draft in drafts])
        if self._device.type != "cuda":
            self._resize_on_cpu(drafts, images)
            return [images, labels], None
        self._resize_on_gpu(drafts, images)
        labels = self._on_gpu(labels)
        event = torch.cuda.Event()  # type: ignore[no-untyped-call]
        event.record()
        return [images, labels], event

    def _on_gpu(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.pin_memory().to(self._device, non_blocking=True)

    def _resize_on_gpu(self, drafts: Sequence[Draft], images: torch.Tensor) -> None:
        from imagenet_prep.torch.triton_resize import BLOCK, resize_parts

        size = self._crop.size
        places = torch.tensor([_place(draft) for draft in drafts], dtype=torch.int64)
        parts = torch.tensor([draft.part[:4] for draft in drafts], dtype=torch.float32)
        places_on_gpu = self._on_gpu(places)
        parts_on_gpu = self._on_gpu(parts)
        options = {"SIZE": size, "IS_FLOAT": images.is_floating_point(), "BLOCK": BLOCK}
        blocks = -(-size * size // BLOCK)  # rounded up
        launch = resize_parts[(len(drafts), blocks)]
        with _LAUNCHING:
            launch(
                places_on_gpu,
                parts_on_gpu,
                images,
                *images.stride(),
                *self._output.scale,
                *self._output.shift,
                **options,
            )

    def _resize_on_cpu(self, drafts: Sequence[Draft], images: torch.Tensor) -> None:
        """The same on a CPU, an image at a time."""
        scale = torch.tensor(self._output.scale)[:, None, None]
        shift = torch.tensor(self._output.shift)[:, None, None]
        for image, draft in zip(images, drafts, strict=True):
            assert draft.pixels is not None
            pixels = draft.pixels.permute(1, 2, 0).numpy()
            cutout = cut_out(pixels, draft.part, 1, self._crop.size)
            resized = self._crop.resized(cutout)
            if draft.is_mirrored:
                resized = resized.flip(-1)
            if image.is_floating_point():
                resized = resized * scale - shift
            image.copy_(resized)


@contextmanager
def own_stream(device: torch.device) -> Iterator[None]:
    """Within, a stream of the device is current that no other thread uses; nothing on a CPU."""
    if device.type != "cuda":
        yield
        return
    try:
        stream = _IDLE[device].pop()
    except IndexError:
        stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    try:
        with torch.cuda.device(device), torch.cuda.stream(stream):
            yield
    finally:
        _IDLE[device].append(stream)


def _place(draft: Draft) -> tuple[int, ...]:
    """The row of a draft in the kernel's table."""
    part = draft.part
    pixels = draft.pixels
    assert pixels is not None
    _, height, width = pixels.shape
    rows = _span(part.top, part.height, height, is_cut=part.is_cut)
    columns = _span(part.left, part.width, width, is_cut=part.is_cut)
    return (pixels.data_ptr(), *pixels.stride(), *rows, *columns, int(draft.is_mirrored))


def _span(start: float, extent: float, limit: int, *, is_cut: bool) -> tuple[int, int]:
    """The first and the last row or column that count."""
    if not is_cut:
        return 0, limit - 1
    return int(start), min(limit, int(np.ceil(start + extent))) - 1
