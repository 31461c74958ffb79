"""Trains on the demo set with accelerate."""

import torch
from accelerate import Accelerator
from torch.nn import functional

import imagenet_prep
from imagenet_prep.torch import ImageDataset, Loader, RandomResizedCrop

if __name__ == "__main__":
    accelerator = Accelerator()
    records = imagenet_prep.open("demo-data", "train")
    dataset = ImageDataset(records, crop=RandomResizedCrop(64, flip=0.5))
    train = Loader(dataset, batch_size=16, num_workers=2)
    network = torch.nn.Sequential(
        torch.nn.AvgPool2d(8), torch.nn.Flatten(), torch.nn.Linear(192, 1000)
    )
    optimizer = torch.optim.AdamW(network.parameters(), lr=3e-3)
    network, optimizer, train = accelerator.prepare(network, optimizer, train)
    for epoch in range(6):
        train.set_epoch(epoch)
        for images, labels in train:
            loss = functional.cross_entropy(network(images / 255), labels)
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
        accelerator.print(f"epoch {epoch}: loss {loss.item():.3f}")
