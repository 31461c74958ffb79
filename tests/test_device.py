"""Loader(decode=...): a device gives the batches of workers;
on the CPU here, and on a GPU where there is one.
"""

from __future__ import annotations

import io
import random
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_sets import flip
from made_tars import in_memory
from PIL import Image

import imagenet_prep
from imagenet_prep import records
from imagenet_prep.demo.photographs import photograph_bytes
from imagenet_prep.errors import DamagedRecordError, UsageError

COUNT = 26
SIZE = 24
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

PHOTOGRAPH = Image.open(io.BytesIO(photograph_bytes(3)[0])).convert("RGB").resize((160, 120))


def saved(image: Image.Image, kind: str = "JPEG", **how: Any) -> bytes:
    """The file of an image."""
    return in_memory(lambda file: image.save(file, kind, **how))


def turned(orientation: int) -> bytes:
    """A JPEG that asks to be turned."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    return saved(PHOTOGRAPH, exif=exif)


def hollow(content: bytes) -> bytes:
    """The JPEG without the second half of its coded data: only strict decoding finds that."""
    return content[: len(content) // 2] + b"\xff\xd9"


FILES = {
    "4:2:0": (saved(PHOTOGRAPH, subsampling="4:2:0"), True),
    "4:2:2": (saved(PHOTOGRAPH, subsampling="4:2:2"), True),
    "4:4:4": (saved(PHOTOGRAPH, subsampling="4:4:4"), True),
    "restarts": (saved(PHOTOGRAPH, restart_marker_rows=2), True),
    "grey": (saved(PHOTOGRAPH.convert("L")), True),
    "progressive": (saved(PHOTOGRAPH, progressive=True), True),
    "EXIF 6": (turned(6), True),
    "EXIF 3": (turned(3), True),
    "RGB": (saved(PHOTOGRAPH, keep_rgb=True), False),
    "CMYK": (saved(PHOTOGRAPH.convert("CMYK")), False),
    "PNG": (saved(PHOTOGRAPH, "PNG"), False),
    "bytes after the end": (saved(PHOTOGRAPH) + b"more", False),
}
"""Files by name, and whether a GPU gets them."""

PLAIN = [is_plain for _, is_plain in FILES.values()]

devices = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])


def write(folder: Path, images: list[bytes]) -> Path:
    """A set of these images in 3 shards, each with a label of its own."""
    with records.ShardWriter(folder / "train", shards=3) as shards:
        for number, image in enumerate(images):
            shards.write({"image/encoded": image, "image/class/label": number + 1})
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """26 images of all kinds, each another part of a photograph. Read only."""
    images = [content for content, _ in FILES.values()]
    for number in range(COUNT - len(images)):
        images.append(saved(PHOTOGRAPH.crop((number, 2 * number, 100 + number, 60 + 3 * number))))
    return write(tmp_path_factory.mktemp("device"), images)


def random_crop() -> Any:
    """The crop for training."""
    from imagenet_prep.torch import RandomResizedCrop

    return RandomResizedCrop(SIZE, flip=0.5)


def loader(folder: Path, crop: Any = None, **settings: Any) -> Any:
    """Batches of 4 images."""
    from imagenet_prep.torch import ImageDataset, Loader

    images = ImageDataset(imagenet_prep.open(folder, "train"), crop=crop or random_crop())
    return Loader(images, **{"batch_size": 4, "drop_last": False, "seed": 7, **settings})


def all_of(loaded: Any) -> tuple[Any, list[int]]:
    """Images and labels of all batches, on the CPU."""
    import torch

    batches = list(loaded)
    labels = torch.cat([labels for _, labels in batches]).tolist()
    return torch.cat([images for images, _ in batches]).cpu(), labels


def apart(images: Any, expected: Any) -> tuple[float, float]:
    """Mean and maximum of the levels by which images differ."""
    gap = (images.float() - expected.float()).abs()
    return float(gap.mean()), float(gap.max())


def crops() -> dict[str, Any]:
    """A crop of each kind; the last draws from two sources."""
    from imagenet_prep.torch import CenterCrop, Crop

    class Lower(Crop):
        def choose(self, height: int, width: int) -> tuple[int, int, int, int]:
            return height // 2, random.randrange(width // 2), height // 4, width // 4

        def draw_flip(self) -> bool:
            return bool(np.random.random() < 0.5)

    return {"random": random_crop(), "center": CenterCrop(SIZE), "own": Lower(SIZE)}


def fully_decoded(folder: Path, crop: Any, label: int, epoch: int) -> Any:
    """The part of an image that workers draw, of the whole image as Pillow decodes it."""
    import torch

    from imagenet_prep.images.parts import ImagePart, cut_out
    from imagenet_prep.torch.batches import own_random_numbers, seed_all

    found = imagenet_prep.open(folder, "train")
    number = next(number for number, record in enumerate(found) if record.class_index == label)
    pixels = np.array(found[number].image())
    with own_random_numbers():
        seed_all(f"7 {epoch} {number}")
        part = ImagePart(*crop.choose(*pixels.shape[:2]))
        is_mirrored = crop.draw_flip()
    cutout = cut_out(pixels, part, 1, SIZE)
    resized = torch.from_numpy(cutout.resized(SIZE)).permute(2, 0, 1)
    return resized.flip(-1) if is_mirrored else resized


@devices
@pytest.mark.parametrize("threads", [0, 2])
@pytest.mark.parametrize("kind", ["random", "center", "own"])
def test_a_device_gives_the_images_and_labels_of_workers(
    torch: Any, folder: Path, device: str, threads: int, kind: str
) -> None:
    """The same parts, mirrored or not, in the same order:
    of a full decode, as near as rounding and chroma allow.
    """
    crop = crops()[kind]
    loaded = loader(folder, crop, decode=device, num_workers=threads)
    for epoch in range(2):
        images, labels = all_of(loaded)
        of_workers = loader(folder, crop)
        of_workers.set_epoch(epoch)
        expected, expected_labels = all_of(of_workers)
        assert labels == expected_labels
        assert sorted(labels) == list(range(COUNT))
        whole = torch.stack([fully_decoded(folder, crop, label, epoch) for label in labels])
        of_device = torch.tensor([label >= len(FILES) or PLAIN[label] for label in labels])
        mean, most = apart(images[of_device], whole[of_device])
        assert mean < (0.5 if device == "cpu" else 3)
        assert most <= (1 if device == "cpu" else 80)
        assert apart(images, expected)[0] < 4  # workers decode at reduced scale
    decoded = 2 * (sum(PLAIN) + COUNT - len(FILES))
    by_gpu = decoded if device == "cuda" else 0
    assert (loaded.decoded["gpu"], loaded.decoded["cpu"]) == (by_gpu, 2 * COUNT - by_gpu)


@pytest.mark.parametrize("share", [0, 0.1, 1])
@pytest.mark.parametrize(
    "limits", [((0.08, 1), (3 / 4, 4 / 3)), ((0.9, 1), (0.2, 7)), ((0.001, 0.01), (1, 1))]
)
def test_parts_of_many_images_are_those_of_each(torch: Any, limits: Any, share: float) -> None:
    """Drawn at once, after any seeds and for images of any size: what the crop draws of one."""
    from imagenet_prep.torch import RandomResizedCrop
    from imagenet_prep.torch.crop_draws import draw_parts

    crop, generator, numbers = (
        RandomResizedCrop(SIZE, *limits, flip=share),
        torch.Generator(),
        random.Random(1),
    )
    sizes = [(375, 500), (500, 375), (1, 1), (1, 65_500), (20_000, 30)] * 30
    sizes += [(numbers.randrange(1, 3000), numbers.randrange(1, 3000)) for _ in range(150)]
    seeds = [numbers.getrandbits(64) for _ in sizes]
    expected = []
    for seed, size in zip(seeds, sizes, strict=True):
        generator.manual_seed(seed)
        expected.append((crop.choose(*size, generator), crop.draw_flip(generator)))
    assert draw_parts(crop, seeds, sizes) == expected


def test_a_gpu_gets_what_it_decodes_as_a_cpu_does(torch: Any) -> None:
    """Baseline and progressive JPEGs in grey or YCbCr, whole, and not turned;
    all others stay on the CPU.
    """
    from imagenet_prep.torch.jpeg_decoders import plain_jpeg

    for name, (content, is_plain) in FILES.items():
        plain = plain_jpeg(memoryview(content))
        assert (plain is not None) == is_plain, name
        if plain is not None:
            assert plain[1:] == PHOTOGRAPH.size[::-1]
            assert b"Exif" not in bytes(plain.content)
            assert len(plain.content) == len(content)
    odd = (Path(__file__).parent / "oddly_sampled.jpg").read_bytes()
    for content in (odd, FILES["4:2:0"][0][:-2], b"\xff\xd8\xff\xd9", b""):
        assert plain_jpeg(memoryview(content)) is None


@devices
def test_a_resumed_epoch_goes_on_with_the_next_record(
    torch: Any, folder: Path, device: str
) -> None:
    """At 10 places, with threads ahead: what was ahead was not given; for another world too."""
    settings = {"decode": device, "num_workers": 2, "batch_size": 2}
    images, labels = all_of(loader(folder, **settings))
    for given in range(1, 11):
        started = loader(folder, **settings)
        batches = iter(started)
        first = [next(batches) for _ in range(given)]
        state = started.state_dict()
        resumed = loader(folder, **settings)
        resumed.load_state_dict(state)
        tail, tail_labels = all_of(resumed)
        assert torch.cat([images.cpu() for images, _ in first]).equal(images[: 2 * given])
        assert tail.equal(images[2 * given :])
        assert tail_labels == labels[2 * given :]
    of_ranks = [loader(folder, **settings, rank=rank, world=2) for rank in range(2)]
    rest = []
    for rank in of_ranks:
        rank.load_state_dict(state)
        rest += all_of(rank)[1]
    assert sorted(rest) == sorted(labels[20:])


@devices
def test_two_ranks_share_an_epoch(torch: Any, folder: Path, device: str) -> None:
    """Each has its half, the one that workers would give it."""
    together = []
    for rank in range(2):
        ranks = {"rank": rank, "world": 2}
        images, labels = all_of(loader(folder, decode=device, num_workers=2, **ranks))
        expected, expected_labels = all_of(loader(folder, **ranks))
        assert labels == expected_labels
        assert apart(images, expected)[0] < 4
        together += labels
    assert sorted(together) == list(range(COUNT))


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """12 images: the image of one is no JPEG, another has a cut header,
    and a bit of the last record is flipped.
    """
    images = [saved(PHOTOGRAPH.crop((number, 0, number + 90, 70))) for number in range(12)]
    images[2], images[5] = b"no JPEG at all", images[5][:400] + b"\xff\xd9"
    write(tmp_path, images)
    flip(max((tmp_path / "train").parent.glob("**/train-00002-*")), -20)
    return tmp_path


@devices
@pytest.mark.parametrize("threads", [0, 2])
def test_damaged_records_are_left_out(torch: Any, damaged: Path, device: str, threads: int) -> None:
    """Their batches are smaller; the Loader counts them and warns."""
    loaded = loader(damaged, shuffle=False, decode=device, num_workers=threads, on_damaged="skip")
    with pytest.warns(UserWarning, match="left out"):
        sizes = [len(labels) for _, labels in loaded]
    assert sum(sizes) == 9
    assert loaded.skipped == {"image": 2, "checksum": 1}


@devices
@pytest.mark.parametrize("threads", [0, 2])
def test_damaged_records_are_errors_and_the_rest_comes(
    torch: Any, damaged: Path, device: str, threads: int
) -> None:
    """Each error names its record; the iterator goes on with the next batch."""
    batches = iter(loader(damaged, shuffle=False, batch_size=1, decode=device, num_workers=threads))
    labels, errors = [], []
    while True:
        try:
            labels += next(batches)[1].tolist()
        except DamagedRecordError as error:
            errors.append(str(error))
        except StopIteration:
            break
    assert len(labels) == 9
    assert len(errors) == 3
    assert sum("its image can't be decoded" in error for error in errors) == 2
    assert all("on_damaged" in error for error in errors)


def test_hollow_images_are_found_where_the_cpu_decodes(torch: Any, tmp_path: Path) -> None:
    """A JPEG that is cut within its coded data; nvJPEG fills the rest with grey."""
    write(tmp_path, [saved(PHOTOGRAPH), hollow(saved(PHOTOGRAPH))])
    with pytest.raises(DamagedRecordError, match="its image can't be decoded"):
        list(loader(tmp_path, decode="cpu", num_workers=1))


@devices
def test_the_output_is_normalised(torch: Any, folder: Path, device: str) -> None:
    """From 0 to 1, minus the mean, by the standard deviation;
    in any type of floats, and in either layout.
    """
    levels = all_of(loader(folder, decode=device))[0].float()
    mean, std = torch.tensor(MEAN)[:, None, None], torch.tensor(STD)[:, None, None]
    for settings, expected, tolerance in (
        ({"normalize": (MEAN, STD)}, (levels / 255 - mean) / std, 1e-5),
        ({"normalize": (MEAN, STD), "dtype": torch.bfloat16}, (levels / 255 - mean) / std, 0.02),
        ({"dtype": torch.float16, "channels_last": True}, levels / 255, 1e-3),
        ({"channels_last": True}, levels, 0),
    ):
        batch, labels = next(iter(loader(folder, decode=device, **settings)))
        assert batch.device.type == labels.device.type == device
        assert batch.dtype == settings.get(
            "dtype", torch.float32 if "normalize" in settings else torch.uint8
        )
        layout = torch.channels_last if "channels_last" in settings else torch.contiguous_format
        assert batch.is_contiguous(memory_format=layout)
        torch.testing.assert_close(batch.cpu().float(), expected[:4], atol=tolerance, rtol=0)


@devices
def test_the_collate_function_gets_the_batch(torch: Any, folder: Path, device: str) -> None:
    """Its random numbers are decided by the seed and the records, as those of workers are."""

    def mixed(batch: list[Any]) -> tuple[Any, Any, float]:
        images, labels = batch
        share = torch.rand(()).item()
        return images * share + images.flip(0) * (1 - share), labels, share

    settings = {
        "decode": device,
        "dtype": torch.float32,
        "collate_fn": mixed,
        "channels_last": True,
    }
    runs = [
        [share for *_, share in loader(folder, num_workers=threads, **settings)]
        for threads in (0, 2)
    ]
    assert runs[0] == runs[1]
    assert len(set(runs[0])) == len(runs[0])


@devices
def test_threads_leave_random_numbers_alone_and_end(torch: Any, folder: Path, device: str) -> None:
    """Those of the thread that trains come as without a Loader;
    a closed iterator leaves no thread.
    """
    earlier = threading.enumerate()
    torch.manual_seed(1)
    expected = [torch.rand(()).item() for _ in range(7)]
    torch.manual_seed(1)
    drawn = []
    for _ in loader(folder, decode=device, num_workers=2):
        drawn.append(torch.rand(()).item())
    assert drawn == expected
    with loader(folder, decode=device, num_workers=2) as loaded:
        batches = iter(loaded)
        next(batches)
    assert not [
        thread
        for thread in threading.enumerate()
        if thread.name.startswith("imagenet-prep") and thread not in earlier
    ]
    with pytest.raises(UsageError, match="closed"):
        next(batches)


def test_slices_are_loaded_too(torch: Any, folder: Path) -> None:
    """A slice of a slice of an ImageDataset:
    each image by its number in the slice, as workers do.
    """
    from imagenet_prep.torch import ImageDataset, Loader

    images = ImageDataset(imagenet_prep.open(folder, "train"), crop=random_crop())
    part = torch.utils.data.Subset(images[2:20], [3, 1, 9, 4, 7])
    by_threads = all_of(Loader(part, 2, drop_last=False, decode="cpu", num_workers=1))
    by_workers = all_of(Loader(part, 2, drop_last=False))
    assert by_threads[1] == by_workers[1]
    assert apart(by_threads[0], by_workers[0])[0] < 4


@devices
def test_the_example_of_the_page(torch: Any, folder: Path, device: str) -> None:
    """docs/train/pytorch.md: a batch of 256 there, of 4 here."""
    page = (Path(__file__).parent.parent / "docs/train/pytorch.md").read_text()
    (block,) = re.findall(r"```python\n((?:(?!```).)*decode=.*?)```", page, re.DOTALL)
    for words, ours in (("/data/imagenet", str(folder)), ('"cuda"', f'"{device}"'), ("256", "4")):
        block = block.replace(words, ours)
    names: dict[str, Any] = {"imagenet_prep": imagenet_prep}
    exec(block, names)
    images, labels = next(iter(names["train"]))
    assert (tuple(images.shape), images.dtype, images.device.type) == (
        (4, 3, 224, 224),
        torch.float32,
        device,
    )
    assert len(labels) == 4


REFUSED: dict[str, tuple[Callable[[Any, Any], dict[str, Any]], str]] = {
    "an own data set": (lambda _, images: {"dataset": [images[0]]}, "expected an ImageDataset"),
    "a transform": (
        lambda kind, images: {"dataset": kind(images.records, len)},
        "expected no transform",
    ),
    "no crop": (lambda kind, images: {"dataset": kind(images.records)}, "expected a RandomRes"),
    "a device": (lambda *_: {"decode": "meta"}, "expected 'cuda', 'cpu', 'auto'"),
    "a word": (lambda *_: {"decode": True}, "expected 'cuda', 'cpu', 'auto'"),
    "normalize of workers": (
        lambda *_: {"decode": None, "normalize": (MEAN, STD)},
        "expected decode=",
    ),
    "two channels": (lambda *_: {"normalize": ((0, 0), (1, 1))}, "three numbers each"),
    "no std": (lambda *_: {"normalize": (MEAN, (0, 1, 1))}, "std above 0"),
    "normal bytes": (lambda *_: {"normalize": (MEAN, STD), "dtype": "uint8"}, "dtype"),
    "whole numbers": (lambda *_: {"dtype": int}, "dtype"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_settings_that_a_device_can_not_follow(torch: Any, folder: Path, name: str) -> None:
    """They are refused with what to do instead."""
    from imagenet_prep.torch import ImageDataset, Loader

    images = ImageDataset(imagenet_prep.open(folder, "train"), crop=random_crop())
    change, words = REFUSED[name]
    with pytest.raises(UsageError, match=words):
        Loader(**{"dataset": images, "decode": "cpu", **change(ImageDataset, images)})


def test_a_gpu_that_is_not_there(torch: Any, folder: Path) -> None:
    """ "cuda" is refused without one, and "auto" takes the CPU;
    another DataLoader is refused either way.
    """
    if not torch.cuda.is_available():
        with pytest.raises(UsageError, match="expected a GPU"):
            loader(folder, decode="cuda")
    loaded = loader(folder, decode="auto")
    assert next(iter(loaded))[0].device.type == ("cuda" if torch.cuda.is_available() else "cpu")
    other = torch.utils.data.DataLoader(loaded.dataset, batch_sampler=loaded.batch_sampler)
    with pytest.raises(UsageError, match="another DataLoader"):
        next(iter(other))
    again = type(loaded)(loaded.dataset, batch_sampler=loaded.batch_sampler)
    assert sorted(all_of(again)[1]) == list(range(COUNT))


def test_without_a_decoder_for_a_gpu(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is not installed, and one that is of another PyTorch: installing it again does
    nothing, so its own reason is shown.
    """
    from imagenet_prep.torch import jpeg_decoders

    def absent() -> Any:
        raise ModuleNotFoundError("No module named 'torchcodec'")

    def of_another_pytorch() -> Any:
        raise RuntimeError("Could not load libtorchcodec.\nmany lines")

    monkeypatch.setattr(jpeg_decoders, "torchcodec_decoder", of_another_pytorch)
    monkeypatch.setattr(jpeg_decoders, "torchvision_decoder", absent)
    with pytest.raises(UsageError, match="neither torchcodec nor torchvision") as caught:
        jpeg_decoders.find_list_decoder()
    assert caught.value.detail.endswith(
        "found: torchcodec: Could not load libtorchcodec.; "
        "torchvision: No module named 'torchcodec'"
    )


@pytest.mark.gpu
def test_other_pixels_than_those_of_the_cpu_are_an_error(
    torch: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A decoder that leaves images black is found by the sample that the CPU decodes too."""
    from imagenet_prep.errors import InputError
    from imagenet_prep.torch.jpeg_decoders import JpegDecoder

    decode = JpegDecoder.decode
    monkeypatch.setattr(
        JpegDecoder, "decode", lambda *images: [image * 0 for image in decode(*images)]
    )
    with pytest.raises(InputError, match=r"other pixels"):
        list(loader(folder, decode="cuda", num_workers=1))


@pytest.mark.gpu
@pytest.mark.parametrize("finder", ["torchcodec_decoder", "torchvision_decoder"])
def test_both_decoders_of_a_gpu(
    torch: Any, folder: Path, monkeypatch: pytest.MonkeyPatch, finder: str
) -> None:
    """torchcodec, and torchvision where that is missing: the same images."""
    from imagenet_prep.torch import jpeg_decoders

    monkeypatch.setattr(jpeg_decoders, "find_list_decoder", getattr(jpeg_decoders, finder))
    loaded = loader(folder, decode="cuda", num_workers=2)
    images, labels = all_of(loaded)
    whole = torch.stack([fully_decoded(folder, random_crop(), label, 0) for label in labels])
    assert apart(images, whole)[0] < 3
    assert loaded.decoded["gpu"] > COUNT / 2
