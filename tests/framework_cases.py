"""Training programs of the frameworks: each gives the numbers of the records that its rank saw,
batch by batch.

`python framework_cases.py FOLDER OUT lightning others` runs those of both kinds, and writes
OUT/0.json for rank 0. Programs of Lightning start their other rank themselves, all others are
started as torchrun does it.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from torchvision_operators import import_torchvision

import imagenet_prep
from imagenet_prep.torch import ImageDataset, Loader

COUNT, BATCH = 53, 4
"""Records of the set, and images per batch: no number of ranks divides them."""

Phases = dict[str, list[list[int]]]
"""By what was done: the numbers of the records in each batch."""

CASES: dict[str, dict[str, Callable[[Path], Phases]]] = {"lightning": {}, "others": {}}
"""By what starts its ranks: each program by its name."""

WORLD = int(os.environ.get("RANKS", "1"))


def case(kind: str) -> Callable[[Callable[[Path], Phases]], Callable[[Path], Phases]]:
    """Register a program by the name of its function."""

    def register(program: Callable[[Path], Phases]) -> Callable[[Path], Phases]:
        CASES[kind][program.__name__] = program
        return program

    return register


def loader(folder: Path, **settings: Any) -> Loader:
    """Batches of 4 for training, of two shards at a time."""
    records = imagenet_prep.open(folder, "train")
    return Loader(ImageDataset(records), **{"batch_size": BATCH, "window": 2, **settings})


def in_order(folder: Path, **settings: Any) -> Loader:
    """Batches of 4 for validation."""
    return loader(folder, shuffle=False, **settings)


def numbers(batches: Iterable[Any]) -> list[list[int]]:
    """The records of each batch: their labels."""
    return [batch[1].tolist() for batch in batches]


def epochs(batches: Iterable[Any], count: int = 2) -> Phases:
    """The records of some epochs."""
    return {f"epoch {epoch}": numbers(batches) for epoch in range(count)}


# Lightning ----------------------------------------------------------------------------------------


def module(folder: Path, seen: Phases, **loaders: Any) -> Any:
    """A module that notes what it sees; its hooks give the loaders."""
    import lightning

    class Noting(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)

        def note(self, name: str, batch: Any) -> Any:
            images, labels = batch
            seen.setdefault(name, []).append(labels.tolist())
            return self.layer(images.float().mean().reshape(1, 1) / 255).sum()

        def training_step(self, batch: Any, number: int) -> Any:
            return self.note(f"epoch {self.current_epoch}", batch)

        def validation_step(self, batch: Any, number: int) -> None:
            self.note("validate", batch)

        def test_step(self, batch: Any, number: int) -> None:
            self.note("test", batch)

        def predict_step(self, batch: Any, number: int) -> Any:
            return self.note("predict", batch)

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    hooks = {
        f"{name}_dataloader": (lambda self, give=give: give(folder))
        for name, give in loaders.items()
    }
    return type("Network", (Noting,), hooks)()


def trainer(**settings: Any) -> Any:
    """A trainer on the processor, which prints and keeps nothing."""
    import lightning

    quiet = {
        "logger": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "num_sanity_val_steps": 0,
    }
    keeping = {} if "callbacks" in settings else {"enable_checkpointing": False}
    ranks = {"accelerator": "cpu", "devices": WORLD, "strategy": "ddp" if WORLD > 1 else "auto"}
    return lightning.Trainer(**{**quiet, **keeping, **ranks, "max_epochs": 2, **settings})


@case("lightning")
def lightning_passed(folder: Path) -> Phases:
    """Loaders that were made before the process group, passed to each call."""
    seen: Phases = {}
    train, validation = loader(folder), in_order(folder)
    network = module(folder, seen)
    trainer().fit(network, train)
    for call in ("validate", "test", "predict"):
        getattr(trainer(), call)(network, validation)
    return seen


@case("lightning")
def lightning_hooks(folder: Path) -> Phases:
    """Loaders that the module's hooks make, with a validation after each epoch."""
    seen: Phases = {}
    network = module(folder, seen, train=loader, val=in_order, test=in_order, predict=in_order)
    trainer().fit(network)
    seen["validate after epochs"] = seen.pop("validate", [])
    for call in ("validate", "test", "predict"):
        getattr(trainer(), call)(network)
    return seen


@case("lightning")
def lightning_predict_shuffled(folder: Path) -> Phases:
    """A loader for training predicts: Lightning keeps the incomplete batch."""
    seen: Phases = {}
    trainer().predict(module(folder, seen), loader(folder))
    return seen


@case("lightning")
def lightning_overfit(folder: Path) -> Phases:
    """The same two batches in both epochs."""
    seen: Phases = {}
    trainer(overfit_batches=2).fit(module(folder, seen), loader(folder))
    return seen


@case("lightning")
def lightning_limited(folder: Path) -> Phases:
    """Two batches of training, and two of validation, each epoch."""
    seen: Phases = {}
    trainer(limit_train_batches=2, limit_val_batches=2).fit(
        module(folder, seen), loader(folder), in_order(folder)
    )
    return seen


@case("lightning")
def lightning_resumed(folder: Path) -> Phases:
    """A checkpoint after 4 batches of the second epoch,
    and another trainer that continues from it.
    """
    from lightning.pytorch.callbacks import ModelCheckpoint

    before: Phases = {}
    after: Phases = {}
    checkpoints = Path(tempfile.gettempdir(), "checkpoints")
    step = steps_per_epoch() + BATCH
    save = ModelCheckpoint(checkpoints, every_n_train_steps=step, save_top_k=-1, filename="at")
    stopped = trainer(max_steps=step, callbacks=[save])
    stopped.fit(module(folder, before), loader(folder))
    trainer(max_epochs=3).fit(
        module(folder, after), loader(folder), ckpt_path=checkpoints / "at.ckpt"
    )
    return {**{f"before: {name}": batches for name, batches in before.items()}, **after}


@case("lightning")
def lightning_cycled_resumed(folder: Path) -> Phases:
    """Two loaders, the smaller one repeated; a checkpoint in the second epoch,
    when it is in an epoch ahead.
    """
    from lightning.pytorch.callbacks import ModelCheckpoint
    from lightning.pytorch.utilities import CombinedLoader

    def both() -> Any:
        return CombinedLoader(
            [loader(folder), loader(folder, batch_size=2 * BATCH)], "max_size_cycle"
        )

    checkpoints = Path(tempfile.gettempdir(), "cycled")
    step = 2 * steps_per_epoch() - 1
    save = ModelCheckpoint(checkpoints, every_n_train_steps=step, save_top_k=-1, filename="at")
    runs: list[Phases] = [{}, {}, {}]
    for seen, settings in zip(
        runs, ({}, {"max_steps": step, "callbacks": [save]}, {}), strict=True
    ):
        network = module(folder, seen)
        network.training_step = lambda batches, number, note=network.note: sum(
            note("seen", batch) for batch in batches
        )
        trainer(**settings).fit(
            network, both(), ckpt_path=checkpoints / "at.ckpt" if seen is runs[2] else None
        )
    return {"whole": runs[0]["seen"], "parts": runs[1]["seen"] + runs[2]["seen"]}


def steps_per_epoch() -> int:
    """Batches of one rank in an epoch of training."""
    return COUNT // WORLD // BATCH


def launched() -> Any:
    """Fabric on all ranks."""
    import lightning

    runner = lightning.Fabric(
        accelerator="cpu", devices=WORLD, strategy="ddp" if WORLD > 1 else "auto"
    )
    runner.launch()
    return runner


@case("lightning")
def fabric(folder: Path) -> Phases:
    """Fabric's loaders: two epochs, and a validation."""
    train, validation = loader(folder), in_order(folder)
    train, validation = launched().setup_dataloaders(train, validation)
    return {**epochs(train), "validate": numbers(validation)}


@case("lightning")
def fabric_resumed(folder: Path) -> Phases:
    """A state of the second epoch, in a loader that Fabric set up: it counts epochs from 0."""
    first, second = loader(folder), loader(folder)
    numbers(first)
    next(iter(first))
    second.load_state_dict(first.state_dict())
    return epochs(launched().setup_dataloaders(second))


# PyTorch ------------------------------------------------------------------------------------------


@case("others")
def before_the_group(folder: Path) -> Phases:
    """A Loader that is older than the process group: the first program, which makes the group."""
    train, validation = loader(folder), in_order(folder)
    if WORLD > 1:
        torch.distributed.init_process_group("gloo")
    return {**epochs(train), "validate": numbers(validation)}


@case("others")
def after_the_group(folder: Path) -> Phases:
    """A Loader that is made when the ranks are known."""
    return {**epochs(loader(folder)), "validate": numbers(in_order(folder, num_workers=1))}


@case("others")
def stateful(folder: Path) -> Phases:
    """torchdata's loader of the data set: stopped after 4 batches of an epoch, and resumed."""
    from torch.utils.data import DistributedSampler
    from torchdata.stateful_dataloader import StatefulDataLoader

    def stateful_loader() -> Any:
        dataset = ImageDataset(imagenet_prep.open(folder, "train"))
        sampler = DistributedSampler(dataset, WORLD, rank_now(), shuffle=False)
        return StatefulDataLoader(dataset, BATCH, sampler=sampler, num_workers=1)

    return stopped_and_resumed(stateful_loader)


def stopped_and_resumed(make: Callable[[], Any]) -> Phases:
    """Two epochs, the first of them by two loaders:
    what the second gives after the state of the first.
    """
    first, second = make(), make()
    before = numbers(batch for _, batch in zip(range(BATCH), first, strict=False))
    second.load_state_dict(first.state_dict())
    return {"epoch 0": before + numbers(second), "epoch 1": numbers(second)}


def rank_now() -> int:
    """This rank, when the process group is there."""
    return torch.distributed.get_rank() if torch.distributed.is_initialized() else 0


@case("others")
def in_its_place(folder: Path) -> Phases:
    """A Loader where a program has torchdata's: the same calls."""
    return stopped_and_resumed(lambda: loader(folder, num_workers=1))


@case("others")
def foreign(folder: Path) -> Phases:
    """Another DataLoader around a Loader's batches: right on one rank, refused on two."""
    parts = loader(folder)
    other = torch.utils.data.DataLoader(
        parts.dataset, batch_sampler=parts.batch_sampler, collate_fn=parts.collate_fn
    )
    first = numbers(other)
    parts.set_epoch(1)
    return {"epoch 0": first, "epoch 1": numbers(other)}


# accelerate ---------------------------------------------------------------------------------------


def accelerator(**settings: Any) -> Any:
    """An accelerator on the processor."""
    from accelerate import Accelerator
    from accelerate.utils import DataLoaderConfiguration

    return Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(**settings))


def prepared(folder: Path, **settings: Any) -> Phases:
    """Two epochs of training, and a validation whose records accelerate gathers."""
    runner = accelerator(**settings)
    train, validation = runner.prepare(loader(folder), in_order(folder))
    phases = {**epochs(train), "gathered": [], "validate": []}
    for _, labels in validation:
        phases["validate"].append(labels.tolist())
        phases["gathered"].append(runner.gather_for_metrics(labels).tolist())
    return phases


@case("others")
def accelerate_even(folder: Path) -> Phases:
    """As it comes: all ranks have equally many batches."""
    return prepared(folder)


@case("others")
def accelerate_uneven(folder: Path) -> Phases:
    """No record comes twice; ranks may have different numbers of batches."""
    train, validation = accelerator(even_batches=False).prepare(loader(folder), in_order(folder))
    return {**epochs(train), "validate": numbers(validation)}


@case("others")
def accelerate_split(folder: Path) -> Phases:
    """A batch is divided among ranks."""
    return prepared(folder, split_batches=True)


@case("others")
def accelerate_dispatched(folder: Path) -> Phases:
    """The first rank reads, and sends the others their parts."""
    return prepared(folder, dispatch_batches=True)


@case("others")
def accelerate_skips(folder: Path) -> Phases:
    """A resume in the second epoch after 2 batches, as accelerate's guide has it."""
    runner = accelerator()
    train = runner.prepare(loader(folder))
    train.set_epoch(1)
    rest = numbers(runner.skip_first_batches(train, 2))
    train.set_epoch(1)
    return {"whole": numbers(train), "rest": rest}


@case("others")
def accelerate_stateful(folder: Path) -> Phases:
    """Its loader is torchdata's: its state, after 2 batches of the second epoch, in another one."""
    first, second = (
        accelerator(use_stateful_dataloader=True).prepare(loader(folder)) for _ in range(2)
    )
    numbers(first)
    before = numbers(batch for _, batch in zip(range(2), first, strict=False))
    state = first.state_dict()
    second.set_epoch(1)
    second.load_state_dict(state)
    return {"before": before, "rest": numbers(second)}


def prepared_with_state(folder: Path) -> tuple[list[list[int]], Any]:
    """The first batch of the second epoch, and a prepared loader with the state after it."""
    first, second = loader(folder), loader(folder)
    numbers(first)
    before = [next(iter(first))[1].tolist()]
    second.load_state_dict(first.state_dict())
    return before, accelerator().prepare(second)


@case("others")
def accelerate_resumed(folder: Path) -> Phases:
    """The rest of the second epoch, and the third."""
    before, train = prepared_with_state(folder)
    train.set_epoch(1)
    return {"before": before, "rest": numbers(train), "epoch 2": numbers(train)}


@case("others")
def accelerate_resumed_without_epoch(folder: Path) -> Phases:
    """accelerate counts epochs from 0, unless it gets the epoch."""
    return epochs(prepared_with_state(folder)[1])


@case("others")
def accelerate_skips_unprepared(folder: Path) -> Phases:
    """A Loader that accelerate did not prepare."""
    runner = accelerator()
    train = loader(folder)
    return {"whole": numbers(train), "rest": numbers(runner.skip_first_batches(loader(folder), 2))}


# Ignite -------------------------------------------------------------------------------------------


def engine_run(kind: str, data: Any) -> Phases:
    """Two epochs of an engine."""
    from ignite import engine
    from ignite.engine import deterministic

    seen: Phases = {}

    def step(running: Any, batch: Any) -> None:
        seen.setdefault(f"epoch {running.state.epoch - 1}", []).append(batch[1].tolist())

    runner = {"Engine": engine.Engine, "DeterministicEngine": deterministic.DeterministicEngine}[
        kind
    ](step)
    if kind == "Engine":
        runner.add_event_handler(
            engine.Events.EPOCH_STARTED, lambda running: data.set_epoch(running.state.epoch - 1)
        )
    runner.run(data, max_epochs=2)
    return seen


@case("others")
def ignite(folder: Path) -> Phases:
    """Ignite's engine."""
    return engine_run("Engine", loader(folder))


@case("others")
def ignite_deterministic(folder: Path) -> Phases:
    """Ignite's engine that replaces the batch sampler."""
    return engine_run("DeterministicEngine", loader(folder))


@case("others")
def ignite_resumed(folder: Path) -> Phases:
    """A state after 4 batches of the first epoch, in another Loader,
    for as many steps as an epoch has.
    """
    from ignite.engine import Engine

    seen: list[list[int]] = []
    first, second = loader(folder), loader(folder)
    numbers(batch for _, batch in zip(range(BATCH), first, strict=False))
    second.load_state_dict(first.state_dict())
    Engine(lambda running, batch: seen.append(batch[1].tolist())).run(second, max_epochs=1)
    return {"rest": seen}


@case("others")
def ignite_auto(folder: Path) -> Phases:
    """A loader that Ignite makes, of the data set."""
    import ignite.distributed as idist

    dataset = ImageDataset(imagenet_prep.open(folder, "train"))
    return {
        "validate": numbers(idist.auto_dataloader(dataset, batch_size=BATCH * WORLD, shuffle=False))
    }


# transformers -------------------------------------------------------------------------------------


def trained(folder: Path, *, prepare: bool, resume: bool = False) -> Phases:
    """Trainer: two epochs and an evaluation,
    or a resume from the checkpoint in the second of those.
    """
    from transformers import Trainer, TrainingArguments

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)

        def forward(self, images: Any, labels: Any) -> Any:
            seen.setdefault(name, []).append(labels.tolist())
            value = self.layer(images.float().mean().reshape(1, 1) / 255).sum()
            return {"loss": value, "logits": torch.zeros(len(labels), 1)}

    class ImageTrainer(Trainer):
        def get_train_dataloader(self) -> Any:
            train = loader(folder, collate_fn=named)
            return self.accelerator.prepare(train) if prepare else train

        def get_eval_dataloader(self, eval_dataset: Any = None) -> Any:
            validation = in_order(folder, collate_fn=named)
            return self.accelerator.prepare(validation) if prepare else validation

    def named(samples: Any) -> Any:
        images, labels = zip(*samples, strict=True)
        return {"images": torch.stack(images), "labels": torch.tensor(labels)}

    seen: Phases = {}
    name = "train"
    out = Path(tempfile.gettempdir(), f"trainer-{prepare}")
    steps = steps_per_epoch()
    settings = {
        "per_device_train_batch_size": BATCH,
        "num_train_epochs": 2,
        "save_steps": steps + 2,
    }
    quiet = {"report_to": "none", "disable_tqdm": True, "use_cpu": True, "logging_strategy": "no"}
    arguments = TrainingArguments(str(out), **settings, **quiet)
    running = ImageTrainer(
        Network(), arguments, compute_metrics=lambda result: {"n": len(result.label_ids)}
    )
    if resume:
        running.train(resume_from_checkpoint=str(out / f"checkpoint-{steps + 2}"))
        return {"rest": seen["train"]}
    running.train()
    name = "validate"
    evaluated = running.evaluate()
    both = seen.pop("train")
    return {
        **seen,
        "epoch 0": both[:steps],
        "epoch 1": both[steps:],
        "evaluated": [[evaluated["eval_n"]]],
    }


@case("others")
def trainer_prepared(folder: Path) -> Phases:
    """Loaders that accelerate prepares."""
    return trained(folder, prepare=True)


@case("others")
def trainer_unprepared(folder: Path) -> Phases:
    """Loaders as they are."""
    return trained(folder, prepare=False)


@case("others")
def trainer_prepared_resumed(folder: Path) -> Phases:
    """The checkpoint of the program before the last; Trainer skips batches."""
    return trained(folder, prepare=True, resume=True)


@case("others")
def trainer_unprepared_resumed(folder: Path) -> Phases:
    """The same, though nobody divides the batches among ranks."""
    return trained(folder, prepare=False, resume=True)


# all of them --------------------------------------------------------------------------------------


def outcome(program: Callable[[Path], Phases], folder: Path) -> Phases | str:
    """What a program saw, or its error in words."""
    try:
        return program(folder)
    except Exception:  # noqa: BLE001 - a program may end in any error, and the next one runs
        return traceback.format_exc()


def main(folder: str, out: str, *kinds: str) -> None:
    """Run programs on a set, and write what they saw."""
    torch.set_num_threads(1)
    import_torchvision()
    only = os.environ.get("CASES", "").split()
    outcomes = {
        name: outcome(program, Path(folder))
        for kind in kinds
        for name, program in CASES[kind].items()
        if not only or name in only
    }
    rank = os.environ.get("LOCAL_RANK", "0")
    Path(out, f"{rank}.json").write_text(json.dumps(outcomes))


if __name__ == "__main__":
    main(*sys.argv[1:])
