"""One loader of training batches: 224 x 224, uint8, cropped and mirrored at random, 2 workers or
threads.

    python loaders.py make NAME FOLDER         what the loader reads, from FOLDER/images (the layout of ImageFolder)
    python loaders.py run NAME FOLDER COUNT    prints wall and processor seconds of two epochs of COUNT images

NAME: image-folder, imagenet-prep, imagenet-prep-channels-last, webdataset, streaming, litdata,
dali. Each imports its own libraries; a status of 77 means that one is not installed.
"""

from __future__ import annotations

import functools
import os
import resource
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.update(CUDA_VISIBLE_DEVICES="")
warnings.simplefilter("ignore")

SIDE, BATCH, WORKERS, EPOCHS = 224, 64, 2, 2
SKIPPED = 77

Epoch = Callable[[], Iterator[int]]
"""Yields the number of images of each batch."""


def transform() -> Any:
    """The usual augmentation of a PIL image."""
    from torchvision import transforms

    steps = [
        transforms.RandomResizedCrop(SIDE),
        transforms.RandomHorizontalFlip(),
        transforms.PILToTensor(),
    ]
    return transforms.Compose(steps)


def opened(data: Any) -> Any:
    """A PIL image in RGB."""
    import io

    from PIL import Image

    return Image.open(io.BytesIO(data)).convert("RGB")


def files(folder: Path) -> list[tuple[Path, int]]:
    """The images, and their classes from 0."""
    names = sorted(path.name for path in (folder / "images").iterdir())
    return [
        (path, names.index(path.parent.name)) for path in sorted((folder / "images").glob("*/*"))
    ]


def image_folder(folder: Path) -> Epoch:
    """ImageFolder of torchvision, and DataLoader."""
    from torch.utils.data import DataLoader
    from torchvision.datasets import ImageFolder

    data = ImageFolder(str(folder / "images"), transform())
    return lambda: (
        len(y) for _, y in DataLoader(data, batch_size=BATCH, shuffle=True, num_workers=WORKERS)
    )


def imagenet_prep(folder: Path, *, channels_last: bool = False) -> Epoch:
    """This project's loader."""
    import imagenet_prep
    from imagenet_prep.torch import ImageDataset, Loader, RandomResizedCrop

    records = imagenet_prep.open(folder / "set", "train")
    data = ImageDataset(records, crop=RandomResizedCrop(SIDE, flip=0.5))
    train = Loader(data, BATCH, num_workers=WORKERS, drop_last=False, channels_last=channels_last)
    return lambda: (len(y) for _, y in train)


def make_webdataset(folder: Path) -> None:
    """Eight tars."""
    import webdataset

    for number in range(8):
        with webdataset.TarWriter(str(folder / f"webdataset-{number}.tar")) as tar:
            for path, label in files(folder)[number::8]:
                tar.write({"__key__": path.stem, "jpg": path.read_bytes(), "cls": label})


def webdataset(folder: Path) -> Epoch:
    """WebDataset and its WebLoader."""
    import webdataset

    tars = sorted(map(str, folder.glob("webdataset-*.tar")))
    data = webdataset.WebDataset(tars, shardshuffle=8).shuffle(1000).to_tuple("jpg", "cls")
    change = transform()
    data = data.map_tuple(lambda image: change(opened(image)), int)
    return lambda: (
        len(y) for _, y in webdataset.WebLoader(data, batch_size=BATCH, num_workers=WORKERS)
    )


def make_streaming(folder: Path) -> None:
    """MDS shards."""
    from streaming import MDSWriter

    with MDSWriter(
        out=str(folder / "streaming"), columns={"image": "bytes", "label": "int"}
    ) as writer:
        for path, label in files(folder):
            writer.write({"image": path.read_bytes(), "label": label})


def streaming(folder: Path) -> Epoch:
    """StreamingDataset of MosaicML, and DataLoader."""
    from streaming import StreamingDataset
    from streaming.base.util import clean_stale_shared_memory
    from torch.utils.data import DataLoader

    change = transform()

    class Images(StreamingDataset):  # type: ignore[misc]
        def __getitem__(self, at: int) -> tuple[Any, int]:
            sample = super().__getitem__(at)
            return change(opened(sample["image"])), sample["label"]

    clean_stale_shared_memory()
    data = Images(local=str(folder / "streaming"), shuffle=True, batch_size=BATCH)
    return lambda: (len(y) for _, y in DataLoader(data, batch_size=BATCH, num_workers=WORKERS))


def _of_litdata(entry: tuple[Path, int]) -> dict[str, Any]:
    return {"image": entry[0].read_bytes(), "label": entry[1]}


def make_litdata(folder: Path) -> None:
    """Chunks."""
    from litdata import optimize

    optimize(_of_litdata, files(folder), str(folder / "litdata"), chunk_bytes="16MB", num_workers=1)


def litdata(folder: Path) -> Epoch:
    """StreamingDataset and StreamingDataLoader of LitData."""
    from litdata import StreamingDataLoader, StreamingDataset

    change = transform()

    class Images(StreamingDataset):  # type: ignore[misc]
        def __getitem__(self, at: Any) -> tuple[Any, int]:
            sample = super().__getitem__(at)
            return change(opened(sample["image"])), sample["label"]

    data = Images(str(folder / "litdata"), shuffle=True)
    return lambda: (
        len(y) for _, y in StreamingDataLoader(data, batch_size=BATCH, num_workers=WORKERS)
    )


def dali(folder: Path) -> Epoch:
    """DALI on the CPU: files, crops decoded alone."""
    from nvidia.dali import fn, pipeline_def, types

    @pipeline_def(batch_size=BATCH, num_threads=WORKERS, device_id=None)  # type: ignore[untyped-decorator]
    def pipeline() -> Any:
        data, labels = fn.readers.file(
            file_root=str(folder / "images"), random_shuffle=True, name="files"
        )
        images = fn.decoders.image_random_crop(
            data, random_area=[0.08, 1.0], random_aspect_ratio=[0.75, 4 / 3]
        )
        images = fn.resize(
            images, size=[SIDE, SIDE], interp_type=types.INTERP_LINEAR, antialias=True
        )
        return fn.flip(images, horizontal=fn.random.coin_flip()), labels

    made = pipeline()
    made.build()
    count = len(files(folder))

    def epoch() -> Iterator[int]:
        given = 0
        while given < count:
            images, _ = made.run()
            size = min(BATCH, count - given)
            assert images.as_array().shape[1:] == (SIDE, SIDE, 3)
            given += size
            yield size

    return epoch


LOADERS: dict[str, Callable[[Path], Epoch]] = {
    "image-folder": image_folder,
    "imagenet-prep": imagenet_prep,
    "imagenet-prep-channels-last": functools.partial(imagenet_prep, channels_last=True),
    "webdataset": webdataset,
    "streaming": streaming,
    "litdata": litdata,
    "dali": dali,
}
MAKERS = {"webdataset": make_webdataset, "streaming": make_streaming, "litdata": make_litdata}


def spent() -> tuple[float, float]:
    """Wall and processor time of this process and its finished children."""
    used = [resource.getrusage(who)[:2] for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return time.perf_counter(), sum(map(sum, used))


def main() -> None:
    """Make what a loader reads, or run it."""
    what, name, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    if what == "make":
        for old in folder.glob(f"{name}*"):
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        MAKERS.get(name, lambda _: None)(folder)
        return
    import torch

    torch.set_num_threads(1)
    epoch = LOADERS[name](folder)
    began = spent()
    for _ in range(EPOCHS):
        count = sum(epoch())
        assert count == int(sys.argv[4]), count
    print(*(now - then for now, then in zip(spent(), began, strict=True)))


if __name__ == "__main__":
    try:
        main()
    except ImportError as error:
        print(f"{error.name} is not installed", file=sys.stderr)
        sys.exit(SKIPPED)
