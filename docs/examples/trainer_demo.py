"""Trains on the demo set with Trainer of transformers."""

import torch
from transformers import Trainer, TrainingArguments, ViTConfig, ViTForImageClassification
from transformers.trainer_utils import get_last_checkpoint

import imagenet_prep
from imagenet_prep.torch import ImageDataset, Loader, RandomResizedCrop


def batch(samples):
    images, labels = zip(*samples)
    return {"pixel_values": torch.stack(images) / 127.5 - 1, "labels": torch.tensor(labels)}


class ImageTrainer(Trainer):
    def get_train_dataloader(self):
        dataset = ImageDataset(
            imagenet_prep.open("demo-data", "train"), crop=RandomResizedCrop(64, flip=0.5)
        )
        train = Loader(
            dataset, self.args.per_device_train_batch_size, num_workers=2, collate_fn=batch
        )
        return self.accelerator.prepare(train)


if __name__ == "__main__":
    small = {
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 128,
    }
    network = ViTForImageClassification(ViTConfig(image_size=64, num_labels=1000, **small))
    settings = {
        "num_train_epochs": 6,
        "per_device_train_batch_size": 16,
        "save_steps": 20,
        "learning_rate": 1e-3,
    }
    trainer = ImageTrainer(network, TrainingArguments("out", report_to="none", **settings))
    result = trainer.train(resume_from_checkpoint=get_last_checkpoint("out"))
    print(f"loss {result.training_loss:.3f}")
