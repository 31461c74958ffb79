"""Trains on the demo set with Ignite."""

import torch
from ignite.engine import Engine, Events
from torch.nn import functional

import imagenet_prep
from imagenet_prep.torch import ImageDataset, Loader, RandomResizedCrop

if __name__ == "__main__":
    records = imagenet_prep.open("demo-data", "train")
    dataset = ImageDataset(records, crop=RandomResizedCrop(64, flip=0.5))
    train = Loader(dataset, batch_size=16, num_workers=2)
    network = torch.nn.Sequential(
        torch.nn.AvgPool2d(8), torch.nn.Flatten(), torch.nn.Linear(192, 1000)
    )
    optimizer = torch.optim.AdamW(network.parameters(), lr=3e-3)

    def step(engine, batch):
        images, labels = batch
        loss = functional.cross_entropy(network(images / 255), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    trainer = Engine(step)
    trainer.add_event_handler(
        Events.EPOCH_COMPLETED,
        lambda engine: print(f"epoch {engine.state.epoch - 1}: loss {engine.state.output:.3f}"),
    )
    trainer.run(train, max_epochs=6)
