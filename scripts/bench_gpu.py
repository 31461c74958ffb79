"""Measures how fast a network trains on a GPU from memory, from our Loader, and from other loaders;
prints JSON.

    python scripts/bench_gpu.py --json gpu.json                   # one GPU, 16 cores: at most 8 minutes
    python scripts/bench_gpu.py --device cpu --photographs 8 --images 64 --batch 8 --seconds 1     # a dry run

Each measurement is a process of its own: first batches alone, then with training (bf16,
channels_last). The script draws its photographs, and repeats them to ``--images`` records of an
epoch. The page cache is warm. Cores are processor time of the process and its workers, by the time
measured. It needs torchvision, and for "dali" that package.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from torchvision_operators import import_torchvision  # noqa: E402 -- it is in tests/

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
WARM = 12
"""Batches before the clock starts, and two of each worker: those that are ready."""

LOGGED = 50
"""Batches after which training waits for the device, as to log the loss."""

Options = argparse.Namespace
Batches = Iterator[tuple[Any, Any]]


def options() -> Options:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--photographs", type=int, default=2000, help="different ones")
    parser.add_argument("--images", type=int, default=11_000, help="records")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--seconds", type=float, default=5, help="of each measurement")
    parser.add_argument(
        "--within", type=float, default=440, help="seconds: what does not fit is left out"
    )
    parser.add_argument("--only", default="", help="measurements, comma-separated")
    parser.add_argument("--folder", type=Path, help="keep photographs and shards here")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--part", help=argparse.SUPPRESS)
    return parser.parse_args()


# data ---------------------------------------------------------------------------------------------


def draw(number: int) -> bytes:
    """A photograph."""
    from imagenet_prep.demo.photographs import photograph_bytes

    return photograph_bytes(number)[0]


def write_data(folder: Path, photographs: int, images: int) -> None:
    """Shards as convert writes them, and a folder of links with the same images, in 10 classes."""
    from imagenet_prep import records
    from imagenet_prep.images.jpeg import read_header
    from imagenet_prep.model import Item
    from imagenet_prep.tfrecord import inception

    with multiprocessing.Pool(os.cpu_count()) as pool:
        contents = pool.map(draw, range(photographs), chunksize=4)
    for number, content in enumerate(contents):
        (folder / f"{number}.jpg").write_bytes(content)
    for label in range(10):
        (folder / "tree" / str(label)).mkdir(parents=True)
    with records.ShardWriter(folder / "set" / "train", shards=16) as shards:
        for number in range(images):
            content, label = contents[number % photographs], number % 10
            item = Item(
                f"n{label:08d}_{number}.JPEG",
                label + 1,
                f"n{label:08d}",
                f"class {label}, some words",
                (),
            )
            header = read_header(content)
            head, tail = inception.record_parts(item, header.width, header.height, len(content))
            shards.write(head + content + tail)
            os.link(
                folder / f"{number % photographs}.jpg",
                folder / "tree" / str(label) / f"{number}.jpg",
            )


class ManyTimes:
    """The numbers of the records, over and over: an epoch as long as ImageNet's."""

    def __init__(self, count: int) -> None:
        self.count, self.times = count, -(-1_280_000 // count)

    def __len__(self) -> int:
        return self.count * self.times

    def __iter__(self) -> Iterator[int]:
        for _ in range(self.times):
            yield from random.sample(range(self.count), self.count)


# loaders ------------------------------------------------------------------------------------------


def from_memory(chosen: Options, _: int) -> Batches:
    """One batch, again and again."""
    import torch

    shape = (chosen.batch, 3, chosen.size, chosen.size)
    images = torch.randn(shape, device=chosen.device, dtype=torch.bfloat16).to(
        memory_format=torch.channels_last
    )
    labels = torch.randint(0, 10, (chosen.batch,), device=chosen.device)
    while True:
        yield images, labels


def from_gpu(chosen: Options, threads: int) -> Batches:
    """Our Loader: the GPU decodes."""
    import torch

    import imagenet_prep
    from imagenet_prep.torch import ImageDataset, Loader, RandomResizedCrop

    crop = RandomResizedCrop(chosen.size, flip=0.5)
    images = ImageDataset(imagenet_prep.open(chosen.folder / "set", "train"), crop=crop)
    loader = Loader(
        images,
        chosen.batch,
        sampler=ManyTimes(len(images)),
        num_workers=threads,
        decode=chosen.device,
        normalize=(MEAN, STD),
        dtype=torch.bfloat16,
        channels_last=True,
    )
    yield from loader


def from_workers(chosen: Options, workers: int) -> Batches:
    """Our Loader: workers decode; pixels are normalised on the device."""
    import imagenet_prep
    from imagenet_prep.torch import ImageDataset, Loader, RandomResizedCrop

    crop = RandomResizedCrop(chosen.size, flip=0.5)
    images = ImageDataset(imagenet_prep.open(chosen.folder / "set", "train"), crop=crop)
    settings = {"num_workers": workers, "pin_memory": chosen.device != "cpu", "channels_last": True}
    loader = Loader(images, chosen.batch, sampler=ManyTimes(len(images)), **settings)
    yield from normalised(loader, chosen)


def from_folder(chosen: Options, workers: int) -> Batches:
    """torchvision's ImageFolder and transforms."""
    import_torchvision()
    from torch.utils.data import DataLoader
    from torchvision.datasets import ImageFolder
    from torchvision.transforms import v2

    steps = [
        v2.PILToTensor(),
        v2.RandomResizedCrop(chosen.size, antialias=True),
        v2.RandomHorizontalFlip(),
    ]
    images = ImageFolder(str(chosen.folder / "tree"), v2.Compose(steps))
    settings = {"num_workers": workers, "pin_memory": chosen.device != "cpu", "drop_last": True}
    yield from normalised(
        DataLoader(images, chosen.batch, sampler=ManyTimes(len(images)), **settings), chosen
    )


def normalised(loader: Any, chosen: Options) -> Batches:
    """Batches of levels, moved to the device and normalised there."""
    import torch

    mean, std = (
        255 * torch.tensor(values, device=chosen.device).view(1, 3, 1, 1) for values in (MEAN, STD)
    )
    for images, labels in loader:
        levels = images.to(chosen.device, non_blocking=True)
        moved = labels.to(chosen.device, non_blocking=True)
        yield ((levels - mean) / std).to(torch.bfloat16, memory_format=torch.channels_last), moved


def from_dali(chosen: Options, threads: int) -> Batches:
    """NVIDIA DALI: its own pipeline on the GPU, from the tree of files."""
    from nvidia.dali import fn, pipeline_def, types
    from nvidia.dali.plugin.pytorch import DALIGenericIterator

    @pipeline_def(batch_size=chosen.batch, num_threads=threads, device_id=0)
    def pipeline() -> Any:
        files, labels = fn.readers.file(file_root=str(chosen.folder / "tree"), random_shuffle=True)
        images = fn.decoders.image_random_crop(files, device="mixed", output_type=types.RGB)
        images = fn.resize(images, size=(chosen.size, chosen.size))
        mean, std = ([255 * value for value in values] for values in (MEAN, STD))
        settings = {"mean": mean, "std": std, "dtype": types.FLOAT16, "output_layout": "CHW"}
        return fn.crop_mirror_normalize(
            images, mirror=fn.random.coin_flip(), **settings
        ), labels.gpu()

    for (batch,) in DALIGenericIterator([pipeline()], ["images", "labels"]):
        yield batch["images"].bfloat16(), batch["labels"].squeeze(1).long()


VARIANTS = TRAINING_FIRST, SHORT_TURNS = "gpu 2 training first", "gpu 2 short turns"
"""Training in a stream of high priority; threads that take turns of 0.5 ms to run Python, not 5."""

PARTS: dict[str, tuple[Callable[[Options, int], Batches], int]] = {
    "memory": (from_memory, 0),
    "gpu 2": (from_gpu, 2),
    "workers 16": (from_workers, 16),
    TRAINING_FIRST: (from_gpu, 2),
    "workers 8": (from_workers, 8),
    "folder 16": (from_folder, 16),
    "gpu 1": (from_gpu, 1),
    "gpu 3": (from_gpu, 3),
    SHORT_TURNS: (from_gpu, 2),
    "folder 8": (from_folder, 8),
    "workers 4": (from_workers, 4),
    "dali 3": (from_dali, 3),
}
"""Measurements by name, the most important first; a number is that of threads or workers."""


# measuring ----------------------------------------------------------------------------------------


def trainer(chosen: Options, network: str) -> Callable[[Any, Any], Any]:
    """A function that trains on a batch."""
    models = import_torchvision().models
    import torch

    torch.backends.cudnn.benchmark = True
    model = getattr(models, network)().to(chosen.device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def train(images: Any, labels: Any) -> Any:
        with torch.autocast(torch.device(chosen.device).type, torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss

    return train


def wait(device: str) -> None:
    """Until the device has done what it was given."""
    import torch

    if device != "cpu":
        torch.cuda.synchronize()


def processor_time() -> float:
    """Of this process and its workers, in seconds."""
    ticks = 0
    for child in multiprocessing.active_children():
        with suppress(OSError):
            ticks += sum(
                map(
                    int,
                    Path(f"/proc/{child.pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13],
                )
            )
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime + ticks / os.sysconf("SC_CLK_TCK")


def rate(batches: Batches, use: Callable[[Any, Any], Any], chosen: Options) -> dict[str, float]:
    """Images per second, and cores."""
    ready = 2 * PARTS[chosen.part][1]
    for _ in range(WARM + ready if chosen.device != "cpu" else 1):
        use(*next(batches))
    wait(chosen.device)
    begin, processor, count = time.monotonic(), processor_time(), 0
    while time.monotonic() - begin < chosen.seconds:
        use(*next(batches))
        count += 1
        if count % LOGGED == 0:
            wait(chosen.device)
    wait(chosen.device)
    wall = time.monotonic() - begin
    cores = (processor_time() - processor) / wall
    return {"images/s": round(count * chosen.batch / wall), "cores": round(cores, 2)}


def measure(chosen: Options) -> None:
    """One part: batches alone, and fed to networks.
    Prints what is known so far, each time a line of JSON.
    """
    import torch

    torch.set_num_threads(1)
    if chosen.part == SHORT_TURNS:
        sys.setswitchinterval(0.0005)
    if chosen.part == TRAINING_FIRST and chosen.device != "cpu":
        torch.cuda.set_stream(torch.cuda.Stream(priority=-1))
    find, count = PARTS[chosen.part]
    values: dict[str, Any] = {}
    batches = find(chosen, count)
    uses = {} if chosen.part in ("memory", *VARIANTS) else {"alone": lambda: lambda *_: None}
    uses |= {network: partial(trainer, chosen, network) for network in ("resnet50", "resnet18")}
    for name, use in uses.items():
        values[name] = rate(batches, use(), chosen)
        if chosen.device != "cpu":
            values["GPU memory in MiB"] = torch.cuda.max_memory_reserved() >> 20
        print(json.dumps(values), flush=True)


def versions(device: str) -> dict[str, Any]:
    """What was measured on."""
    from importlib.metadata import PackageNotFoundError, version

    import torch

    values: dict[str, Any] = {
        "python": sys.version.split()[0],
        "cores": len(os.sched_getaffinity(0)),
    }
    values["card"] = torch.cuda.get_device_name() if device != "cpu" else "none"
    for name in (
        "torch",
        "torchvision",
        "torchcodec",
        "triton",
        "simplejpeg",
        "nvidia-dali-cuda130",
    ):
        with suppress(PackageNotFoundError):
            values[name] = version(name)
    return values


def measure_all(chosen: Options, begin: float) -> dict[str, Any]:
    """Every part, each in a process of its own; what fails or does not fit says so."""
    results: dict[str, Any] = {"versions": versions(chosen.device)}
    names = chosen.only.split(",") if chosen.only else [*PARTS]
    for name in names:
        left = chosen.within - (time.monotonic() - begin)
        if left < 5 * chosen.seconds:
            results[name] = "left out: no time"
            continue
        command = [
            sys.executable,
            __file__,
            *sys.argv[1:],
            "--folder",
            str(chosen.folder),
            "--part",
            name,
        ]
        try:
            done = subprocess.run(command, capture_output=True, timeout=min(left, 90), check=False)
            output, problem = done.stdout, done.stderr.decode()[-400:] if done.returncode else ""
        except subprocess.TimeoutExpired as late:
            output, problem = late.stdout or b"", "not all in time"
        results[name] = json.loads(output.splitlines()[-1]) if output else {}
        if problem:
            results[name]["failed"] = problem
        print(f"[{time.monotonic() - begin:5.0f} s] {name}: {results[name]}", flush=True)
        if chosen.json:
            chosen.json.write_text(json.dumps(results, indent=1))
    return results


def main() -> None:
    """Draw, write, measure."""
    begin, chosen = time.monotonic(), options()
    if chosen.part:
        measure(chosen)
        for child in multiprocessing.active_children():
            # otherwise workers keep the output open until they find that their parent ended
            child.kill()
        os._exit(0)  # threads end with it
    with tempfile.TemporaryDirectory() as temporary:
        chosen.folder = chosen.folder or Path(temporary)
        if not (chosen.folder / "set").exists():
            write_data(chosen.folder, chosen.photographs, chosen.images)
            print(f"[{time.monotonic() - begin:5.0f} s] {chosen.images} records", flush=True)
        measure_all(chosen, begin)


if __name__ == "__main__":
    main()
