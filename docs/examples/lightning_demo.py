"""Trains on the demo set with PyTorch Lightning."""

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch.nn import functional

import imagenet_prep
from imagenet_prep.torch import ImageDataset, Loader, RandomResizedCrop


class Network(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        convolution = torch.nn.Conv2d(3, 16, 5, stride=2)
        pool = torch.nn.AdaptiveAvgPool2d(4)
        self.layers = torch.nn.Sequential(
            convolution, torch.nn.ReLU(), pool, torch.nn.Flatten(), torch.nn.Linear(256, 1000)
        )

    def training_step(self, batch, number):
        images, labels = batch
        loss = functional.cross_entropy(self.layers(images / 255), labels)
        self.log("loss", loss, on_step=False, on_epoch=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=3e-3)


if __name__ == "__main__":
    lightning.seed_everything(0)
    records = imagenet_prep.open("demo-data", "train")
    dataset = ImageDataset(records, crop=RandomResizedCrop(64, flip=0.5))
    train = Loader(dataset, batch_size=16, num_workers=2)
    save = ModelCheckpoint("checkpoints", every_n_train_steps=20, save_last=True)
    trainer = lightning.Trainer(max_epochs=6, callbacks=[save], logger=False)
    trainer.fit(Network(), train, ckpt_path="last")
    print(f"loss {trainer.callback_metrics['loss']:.3f}")
