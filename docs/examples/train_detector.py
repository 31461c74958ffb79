"""Trains a small Faster R-CNN on shapes-shards, and evaluates it."""

import torch
from torch import nn
from torchmetrics.detection import MeanAveragePrecision
from torchvision.models.detection import FasterRCNN
from torchvision.models.detection.faster_rcnn import FastRCNNPredictor, TwoMLPHead
from torchvision.models.detection.rpn import AnchorGenerator
from torchvision.ops import MultiScaleRoIAlign
from torchvision.transforms import v2

import imagenet_prep
from imagenet_prep.torch import DetectionDataset, Loader, collate_detection

EPOCHS = 8


def make_network(num_classes):
    layers = []
    for before, after, stride in ((3, 16, 2), (16, 32, 2), (32, 64, 2), (64, 64, 1)):
        convolution = nn.Conv2d(before, after, 3, stride, padding=1)
        layers += [convolution, nn.BatchNorm2d(after), nn.ReLU()]
    backbone = nn.Sequential(*layers)
    backbone.out_channels = 64
    return FasterRCNN(
        backbone,
        min_size=128,
        rpn_anchor_generator=AnchorGenerator(sizes=((24, 48),), aspect_ratios=((1.0,),)),
        rpn_pre_nms_top_n_train=200,
        rpn_post_nms_top_n_train=100,
        rpn_pre_nms_top_n_test=100,
        rpn_post_nms_top_n_test=50,
        box_roi_pool=MultiScaleRoIAlign(["0"], output_size=5, sampling_ratio=2),
        box_head=TwoMLPHead(64 * 5 * 5, 128),
        box_predictor=FastRCNNPredictor(128, num_classes),
        box_batch_size_per_image=32,
    )


def train(network, dataset, epochs):
    loader = Loader(dataset, batch_size=8, num_workers=1, collate_fn=collate_detection)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3)
    for epoch in range(epochs):
        total = 0.0
        for images, targets in loader:
            loss = sum(network(images, targets).values())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: loss {total / len(loader):.3f}")


@torch.no_grad()
def evaluate(predict, dataset):
    """COCO's measures, which pycocotools computes from the objects in the records."""
    metric = MeanAveragePrecision()
    for images, targets in Loader(
        dataset, batch_size=8, shuffle=False, collate_fn=collate_detection
    ):
        metric.update(predict(images), targets)
    return metric.compute()


def main():
    torch.manual_seed(0)
    pixels = v2.ToDtype(torch.float32, scale=True)  # models take numbers from 0 to 1
    records = imagenet_prep.open("shapes-shards", "train")
    dataset = DetectionDataset(
        records, v2.Compose([v2.RandomHorizontalFlip(), pixels]), leave_out=["crowd"]
    )
    network = make_network(dataset.num_classes)
    train(network, dataset, EPOCHS)
    network.eval()
    measures = evaluate(
        network, DetectionDataset(imagenet_prep.open("shapes-shards", "validation"), pixels)
    )
    print(f"AP {measures['map']:.3f}, AP at 0.5 {measures['map_50']:.3f}")
    torch.save(network.state_dict(), "detector.pt")


if __name__ == "__main__":
    main()
