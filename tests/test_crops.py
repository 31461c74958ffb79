"""Crops: parts are torchvision's, pixels those of decode-then-crop,
and augmentation is the same in every run.
"""

from __future__ import annotations

import io
import itertools
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simplejpeg
from made_tars import in_memory
from PIL import Image
from torchvision_operators import import_torchvision

import imagenet_prep
from imagenet_prep import records
from imagenet_prep.demo.photographs import photograph_bytes
from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.images.parts import Cutout, ImagePart, PartChooser, decode_part
from imagenet_prep.images.pixels import decode_array

COUNT = 61
"""A number that no number of ranks and images a batch divides."""

USUAL = ((0.08, 1.0), (3 / 4, 4 / 3))


def saved(image: Image.Image, kind: str = "JPEG", **how: Any) -> bytes:
    """The file of an image."""
    return in_memory(lambda file: image.save(file, kind, **how))


PHOTOGRAPH = Image.open(io.BytesIO(photograph_bytes(3)[0])).convert("RGB").resize((501, 393))
FILES = {
    "4:2:0": saved(PHOTOGRAPH, subsampling="4:2:0"),
    "4:2:2": saved(PHOTOGRAPH, subsampling="4:2:2"),
    "4:4:4": saved(PHOTOGRAPH, subsampling="4:4:4"),
    "restarts": saved(PHOTOGRAPH, restart_marker_rows=2),
    "grey": saved(PHOTOGRAPH.convert("L")),
    "progressive": saved(PHOTOGRAPH, progressive=True),
    "CMYK": saved(PHOTOGRAPH.convert("CMYK")),
    "PNG": saved(PHOTOGRAPH, "PNG"),
}


@pytest.fixture(scope="module")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """61 small photographs in 5 shards, each with a label of its own. Read only."""
    folder = tmp_path_factory.mktemp("photographs")
    with records.ShardWriter(folder / "train", shards=5) as shards:
        for number in range(COUNT):
            image = PHOTOGRAPH.crop((number, number, number + 80, number + 60))
            shards.write({"image/encoded": saved(image), "image/class/label": number + 1})
    return folder


# parts and pixels ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seed", "height", "width", "limits", "expected"),
    [
        (0, 375, 500, USUAL, [(17, 80, 294, 343), (52, 183, 251, 271), (26, 182, 295, 318)]),
        (1, 500, 333, USUAL, [(38, 39, 256, 293), (167, 21, 253, 293), (91, 0, 363, 325)]),
        (2, 64, 64, ((0.5, 1), (1, 1)), [(4, 2, 58, 58), (0, 1, 59, 59), (2, 1, 57, 57)]),
        (4, 10, 1000, USUAL, [(0, 493, 10, 13)]),
        (5, 1000, 10, USUAL, [(493, 0, 13, 10)]),
        (6, 1, 1, USUAL, [(0, 0, 1, 1)]),
        (8, 2448, 3264, ((0.2, 0.5), (0.5, 2)), [(124, 57, 1370, 2212), (331, 847, 1522, 1859)]),
        (9, 90, 120, ((1, 1), (1, 1)), [(0, 15, 90, 90)]),
    ],
)
def test_random_parts_are_torchvisions(
    torch: Any, seed: int, height: int, width: int, limits: Any, expected: list[tuple[int, ...]]
) -> None:
    """The numbers that get_params of torchvision 0.28 gives after the same manual_seed."""
    from imagenet_prep.torch import RandomResizedCrop

    torch.manual_seed(seed)
    crop, generator = RandomResizedCrop(224, *limits), torch.Generator().manual_seed(seed)
    assert [crop.choose(height, width)[:4] for _ in expected] == expected
    assert [crop.choose(height, width, generator)[:4] for _ in expected] == expected


class OneFile:
    """An image's file as a record that crops read."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def cutout(self, choose: PartChooser, size: int) -> Cutout:
        """As Record.cutout."""
        return decode_part(self.data, choose, size)


def differences(image: Any, expected: Any) -> Any:
    """Those of a tensor (3, height, width) and a PIL image, level by level."""
    return np.abs(image.permute(1, 2, 0).numpy().astype(int) - np.asarray(expected))


SIZES = [
    *((500, 375), (375, 500), (501, 333), (800, 600), (2900, 2999), (300, 257), (512, 512)),
    *((256, 256), (224, 224), (64, 48), (13, 400), (1, 900), (1, 1)),
]
"""Width and height: usual, large, odd, at the sizes of the crops,
smaller, and of one row or column.
"""


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_the_middle_is_torchvisions(torch: Any, size: tuple[int, int]) -> None:
    """CenterCrop equals Resize and CenterCrop: 0.05 levels apart on average, and 2 at most, by
    rounding.

    At reduced scale, for images more than six times as large as the crop, 0.15 on average and 2 at
    most.
    """
    import_torchvision()
    from torchvision import transforms

    from imagenet_prep.torch import CenterCrop

    data = saved(PHOTOGRAPH.resize(size, Image.Resampling.LANCZOS))
    for side, resized in ((224, 256), (224, 232), (64, 64), (33, 50)):
        change = transforms.Compose([transforms.Resize(resized), transforms.CenterCrop(side)])
        image = CenterCrop(side, side / resized)(OneFile(data))
        difference = differences(image, change(Image.open(io.BytesIO(data))))
        is_reduced = min(size) >= 12 * resized
        assert difference.mean() < (0.15 if is_reduced else 0.05), (side, resized)
        assert difference.max() <= 2, (side, resized)


@pytest.mark.parametrize("kind", FILES)
def test_crops_of_every_kind_of_file_are_torchvisions(torch: Any, kind: str) -> None:
    """Both crops are a level of rounding apart at full scale; a mirrored one, too."""
    import_torchvision()
    from torchvision import transforms

    from imagenet_prep.torch import CenterCrop, RandomResizedCrop

    data = FILES[kind]
    image = Image.open(io.BytesIO(data)) if kind != "CMYK" else Image.fromarray(decode_array(data))
    image = image.convert("RGB")
    middle = transforms.Compose([transforms.Resize(256), transforms.CenterCrop(224)])
    difference = differences(CenterCrop(224)(OneFile(data)), middle(image))
    assert (difference.mean() < 0.01, difference.max() <= 1) == (True, True)
    for flip, change in ((0, lambda image: image), (1, transforms.RandomHorizontalFlip(1))):
        torch.manual_seed(flip)
        expected = change(transforms.RandomResizedCrop(224)(image))
        torch.manual_seed(flip)
        difference = differences(RandomResizedCrop(224, flip=flip)(OneFile(data)), expected)
        assert (difference.mean() < 0.3, difference.max() <= 1) == (True, True), flip


@pytest.mark.parametrize(("side", "mean"), [(224, 1), (40, 1.5)])
def test_random_crops_of_large_images_are_close_to_torchvisions(
    torch: Any, side: int, mean: float
) -> None:
    """Decoded at reduced scale, they are about a level apart on average,
    and 20 at most at edges.
    """
    import_torchvision()
    from torchvision import transforms

    from imagenet_prep.torch import RandomResizedCrop

    data = saved(PHOTOGRAPH.resize((1603, 1201), Image.Resampling.LANCZOS))
    image = Image.open(io.BytesIO(data))
    for seed in range(8):
        torch.manual_seed(seed)
        expected = transforms.RandomResizedCrop(side)(image)
        torch.manual_seed(seed)
        difference = differences(RandomResizedCrop(side)(OneFile(data)), expected)
        assert (difference.mean() < mean, difference.max() <= 20) == (True, True), seed


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("side", [50, 400])
def test_a_part_is_what_decode_then_crop_gives(kind: str, side: int) -> None:
    """Every pixel is that of the whole image, decoded at the same scale;
    those of the last row, too.
    """
    data, draw = FILES[kind], random.Random(side)
    for _ in range(12):
        height, width = draw.randint(1, 393), draw.randint(1, 501)
        top, left = draw.randint(0, 393 - height), draw.randint(0, 501 - width)
        found = decode_part(data, lambda *_, part=(top, left, height, width): part, side)
        needed = max(side, 16)
        eighths = 8
        if kind not in ("PNG", "CMYK"):
            fits = [n for n in (4, 3, 2, 1) if n * height >= 8 * needed and n * width >= 8 * needed]
            eighths = min(fits, default=8)
        scale = {
            "min_height": -(-393 * eighths // 8),
            "min_width": -(-501 * eighths // 8),
            "min_factor": 2,
        }
        whole = decode_array(data) if eighths == 8 else simplejpeg.decode_jpeg(data, **scale)
        x, y = left * eighths / 8, top * eighths / 8
        right, bottom = x + width * eighths / 8, y + height * eighths / 8
        rows, columns = slice(int(y), math.ceil(bottom)), slice(int(x), math.ceil(right))
        assert np.array_equal(found.pixels, whole[rows, columns]), (height, width, eighths)
        assert found.box == (x - int(x), y - int(y), right - int(x), bottom - int(y))


def test_around_a_part_that_is_not_cut_other_pixels_count() -> None:
    """As many as the resize reaches: none beyond the image,
    so that the part equals that of the resized image.
    """
    data = FILES["PNG"]
    for top, left in ((0, 0), (100.5, 200.25), (293, 401)):
        found = decode_part(
            data, lambda *_, part=ImagePart(top, left, 100, 100, is_cut=False): part, 25
        )
        reach = 4
        rows = slice(max(0, int(top) - reach), min(393, math.ceil(top + 100) + reach))
        columns = slice(max(0, int(left) - reach), min(501, math.ceil(left + 100) + reach))
        assert np.array_equal(found.pixels, decode_array(data)[rows, columns])
        box = (left, top, left + 100, top + 100)
        expected = PHOTOGRAPH.resize((25, 25), Image.Resampling.BILINEAR, box)
        assert np.abs(found.resized(25).astype(int) - np.asarray(expected)).max() <= 1


def test_resized_parts_are_close_to_those_of_the_whole(torch: Any, photographs: Path) -> None:
    """At full scale they are those of decode, crop, resize;
    a part of a large image differs by a few levels at most.
    """
    from torch.nn import functional

    from imagenet_prep.torch import Crop, ImageDataset

    class Lower(Crop):
        def choose(self, height: int, width: int) -> tuple[int, int, int, int]:
            return height // 8, width // 4, height // 2, width // 2

    found = imagenet_prep.open(photographs, "train")
    for side, most in ((64, 0), (12, 12)):
        for record, (image, label) in zip(
            found, ImageDataset(found, crop=Lower(side)), strict=True
        ):
            assert (tuple(image.shape), image.dtype, label) == (
                (3, side, side),
                torch.uint8,
                record.label - 1,
            )
            part = np.ascontiguousarray(record.array()[7:37, 20:60])
            whole = torch.from_numpy(part).permute(2, 0, 1)[None]
            expected = functional.interpolate(whole, (side, side), mode="bilinear", antialias=True)[
                0
            ]
            assert (image.int() - expected.int()).abs().max() <= most


def test_a_part_of_a_record_is_an_array_of_one_size(photographs: Path) -> None:
    """Record.part resizes the part, in fractions of pixels: batches of arrays need no PyTorch."""
    found = imagenet_prep.open(photographs, "train")
    arrays = list(found.map(lambda record: record.part(lambda h, w: (0.5, 1.25, h / 2, w / 2), 20)))
    assert {(array.shape, array.dtype.name) for array in arrays} == {((20, 20, 3), "uint8")}
    image = Image.fromarray(found[3].array()[:31, :42])
    expected = image.resize((20, 20), Image.Resampling.BILINEAR, (1.25, 0.5, 41.25, 30.5))
    assert np.abs(arrays[3].astype(int) - np.asarray(expected)).max() <= 1


def test_flipped_crops_are_mirror_images(torch: Any, photographs: Path) -> None:
    """Of all, none or half of the images; a level of rounding apart."""
    from imagenet_prep.torch import RandomResizedCrop

    found = imagenet_prep.open(photographs, "train")
    counts = []
    for flip in (0, 0.5, 1):
        mirrored = 0
        for number, record in enumerate(found):
            images = []
            for share in (0, flip):
                torch.manual_seed(number)
                images.append(RandomResizedCrop(32, flip=share)(record).int())
            same, other = (
                int((images[1] - each).abs().max()) for each in (images[0], images[0].flip(-1))
            )
            assert min(same, other) <= 1
            mirrored += other <= 1
        counts.append(mirrored)
    assert counts[0] == 0
    assert 15 < counts[1] < 46
    assert counts[2] == COUNT


def test_damage_in_a_part_is_reported(torch: Any, tmp_path: Path) -> None:
    """Damage within the part, and a file that is cut below it, are errors that name the record."""
    from imagenet_prep.torch import CenterCrop, Crop, ImageDataset

    class Upper(Crop):
        def choose(self, height: int, width: int) -> tuple[int, int, int, int]:
            return 0, 0, 100, 100

    whole = FILES["4:2:0"]
    middle = len(whole) // 10
    damaged = whole[:middle] + b"\xff\xd0\xff\xd1" * 5 + whole[middle + 20 :]
    for number, (data, crop) in enumerate(
        [(damaged, Upper(32)), (damaged, CenterCrop(32)), (whole[: len(whole) * 3 // 4], Upper(32))]
    ):
        folder = tmp_path / str(number)
        with records.ShardWriter(folder / "train", shards=1) as shards:
            shards.write({"image/encoded": data, "image/class/label": 1})
        with pytest.raises(InputError, match=r"record 0 at byte 0.*can't be decoded"):
            ImageDataset(imagenet_prep.open(folder, "train"), crop=crop)[0]


def test_a_sound_image_of_a_format_that_is_not_read_is_to_be_converted(tmp_path: Path) -> None:
    """Another copy of such a record would be refused, too."""
    heic = b"\0\0\0\x18ftypheic" + bytes(40)
    with records.ShardWriter(tmp_path / "train", shards=1) as shards:
        shards.write({"image/encoded": heic, "image/class/label": 1})
    with pytest.raises(InputError, match="HEIC can't be read") as caught:
        next(iter(imagenet_prep.open(tmp_path, "train"))).array()
    assert caught.value.hint == "convert it to JPEG or PNG"


def test_a_part_outside_of_the_image_is_refused() -> None:
    """Empty, negative, or too large: never fewer pixels than were asked for."""
    for part in (
        (0, 0, 0, 5),
        (-1, 0, 5, 5),
        (0, 0, 394, 5),
        (0, 500, 5, 2),
        (0, 0, math.nan, 5),
        (0, 0, 393.1, 5),
    ):
        with pytest.raises(ValueError, match="height 393 and width 501"):
            decode_part(FILES["4:2:0"], lambda *_, part=part: part, 10)
    with pytest.raises(ImageError, match="not an image of a known format"):
        decode_part(b"text", lambda *_: (0, 0, 1, 1), 10)


@pytest.mark.parametrize(
    "wrong",
    [
        {"size": 0},
        {"size": 2.5},
        {"scale": 0.5},
        {"scale": (0, 1)},
        {"ratio": (2, 1)},
        {"flip": 2},
        {"flip": "0.5"},
        {"flip": 10**400},
    ],
    ids=lambda wrong: str(wrong)[:20],
)
def test_crops_that_can_not_be(torch: Any, wrong: dict[str, Any], photographs: Path) -> None:
    """A size, and limits in their order; a crop of torchvision's comes
    after decoding and is no Crop.
    """
    from imagenet_prep.torch import ImageDataset, RandomResizedCrop

    with pytest.raises(UsageError, match=rf"^RandomResizedCrop\({next(iter(wrong))}="):
        RandomResizedCrop(**{"size": 224, **wrong})
    assert RandomResizedCrop(224, flip=np.float32(0.5)).flip == 0.5  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"^ImageDataset\(crop="):
        ImageDataset(imagenet_prep.open(photographs, "train"), crop=224)


@pytest.mark.parametrize("part", [0, 2, "a"])
def test_a_part_that_can_not_be(torch: Any, part: Any) -> None:
    """The error has the argument as it was given: one share."""
    from imagenet_prep.torch import CenterCrop

    with pytest.raises(UsageError) as caught:
        CenterCrop(224, part=part)
    assert caught.value.lines == [
        f"CenterCrop(part={part!r})",
        "expected a share above 0, at most 1",
    ]


# the same pixels in every run ---------------------------------------------------------------------


def noisy(image: Any) -> Any:
    """An augmentation with random numbers of each of the three."""
    import torch

    return image.float() + torch.rand(()) + random.random() + np.random.random()


def items(
    photographs: Path, start: Any = None, **settings: Any
) -> tuple[dict[int, bytes], dict[str, Any]]:
    """The pixels of the rest of an epoch by label, and the state after two batches."""
    from imagenet_prep.torch import ImageDataset, Loader, RandomResizedCrop

    dataset = ImageDataset(
        imagenet_prep.open(photographs, "train"), noisy, crop=RandomResizedCrop(16)
    )
    train = Loader(dataset, **{"batch_size": 4, "seed": 3, **settings})
    if isinstance(start, int):
        train.set_epoch(start)
    elif start:
        train.load_state_dict(start)
    found, state = {}, {}
    for number, (images, labels) in enumerate(train):
        found |= {
            int(label): image.numpy().tobytes() for image, label in zip(images, labels, strict=True)
        }
        state = train.state_dict() if number == 1 else state
    return found, state


def test_augmentation_depends_on_seed_epoch_and_record(torch: Any, photographs: Path) -> None:
    """Not on workers, batches, ranks or a resume;
    the random numbers of the program itself stay as they were.
    """
    expected, state = items(photographs)
    before = random.getstate(), np.random.get_state()[1].tolist()
    assert len(set(expected.values())) == len(expected) == 60
    again, _ = items(photographs, state)
    assert len(again) == 52
    for found in (
        again,
        items(photographs, num_workers=2)[0],
        items(photographs, batch_size=7)[0],
        *(items(photographs, rank=rank, world=3)[0] for rank in range(3)),
        items(photographs, shuffle=False)[0],
    ):
        assert all(expected.get(label, image) == image for label, image in found.items())
    assert before == (random.getstate(), np.random.get_state()[1].tolist())
    after = set()
    for other in ({"start": 1}, {"seed": 4}):
        torch.manual_seed(5)
        assert not set(expected.values()) & set(items(photographs, **other)[0].values())
        after.add(float(torch.rand(())))
    assert len(after) == 1


@pytest.mark.parametrize("drop_last", [True, False])
@pytest.mark.parametrize(("before", "after"), [((1, 4), (3, 2)), ((3, 2), (2, 2))])
def test_another_world_gives_the_rest_of_the_epoch(
    torch: Any, photographs: Path, before: tuple[int, int], after: tuple[int, int], drop_last: bool
) -> None:
    """Records that no rank was given come once, with the same pixels;
    twice in a row, and the next epoch is whole.
    """
    from imagenet_prep.torch import ImageDataset, Loader

    def loaders(world: int, size: int, state: Any = None) -> list[Any]:
        dataset = ImageDataset(imagenet_prep.open(photographs, "train"))
        made = [
            Loader(dataset, size, rank=rank, world=world, drop_last=drop_last)
            for rank in range(world)
        ]
        for each in made:
            if state:
                each.load_state_dict(state)
        return made

    def some(ranks: list[Any], most: int) -> list[int]:
        return [
            n
            for rank in ranks
            for _, (_, labels) in zip(range(most), rank, strict=False)
            for n in labels.tolist()
        ]

    seen, state = list[int](), None
    for world, size in (before, after, (1, 3)):
        ranks = loaders(world, size, state)
        expected = len(ranks[0])
        seen += some(ranks, 2)
        state = ranks[0].state_dict()
        assert 2 <= expected == len(ranks[-1])
    (last,) = loaders(1, 2, state)
    count, rest = len(last), [labels.tolist() for _, labels in last]
    assert count == len(rest)
    seen += itertools.chain.from_iterable(rest)
    assert len(seen) == len(set(seen))
    assert len(seen) >= COUNT - drop_last  # one record is no batch of two
    assert (last.epoch, last.given) == (1, 0)
    assert len(last) == (COUNT // 2 if drop_last else -(-COUNT // 2))
    assert len(set(some([last], COUNT))) == (COUNT // 2 * 2 if drop_last else COUNT)


@pytest.mark.parametrize("workers", [0, 1])
def test_batches_are_laid_out_by_pixel(torch: Any, photographs: Path, workers: int) -> None:
    """By choice; values and shape are the same.
    Samples of another form, or a collate_fn, are refused.
    """
    from imagenet_prep.torch import CenterCrop, ImageDataset, Loader

    dataset = ImageDataset(imagenet_prep.open(photographs, "train"), crop=CenterCrop(32))
    batches = [
        list(Loader(dataset, 8, channels_last=each, num_workers=workers, drop_last=False))
        for each in (False, True)
    ]
    for (one, first), (other, second) in zip(*batches, strict=True):
        assert torch.equal(one, other)
        assert torch.equal(first, second)
        assert one.is_contiguous()
        assert other.is_contiguous(memory_format=torch.channels_last)
    with pytest.raises(UsageError, match="expected only one of these options"):
        Loader(dataset, 8, channels_last=True, collate_fn=list)
    with pytest.raises(UsageError, match=r"3-D"):
        next(iter(Loader([1, 2, 3], 2, channels_last=True)))
