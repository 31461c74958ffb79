"""Compares a detector's predictions with the annotation file, by pycocotools."""

import torch
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from imagenet_prep.torch import Loader, collate_detection


@torch.no_grad()
def score(predict, dataset, annotation_file):
    """The twelve numbers that COCOeval prints; the first one is AP."""
    results = []
    for images, targets in Loader(
        dataset, batch_size=8, shuffle=False, collate_fn=collate_detection
    ):
        for target, found in zip(targets, predict(images)):
            for box, label, confidence in zip(
                found["boxes"].tolist(), found["labels"].tolist(), found["scores"].tolist()
            ):
                corner, size = box[:2], [box[2] - box[0], box[3] - box[1]]
                results.append(
                    {
                        "image_id": target["image_id"],
                        "category_id": label,
                        "score": confidence,
                        "bbox": [*corner, *size],
                    }
                )
    annotations = COCO(annotation_file)
    evaluation = COCOeval(annotations, annotations.loadRes(results), "bbox")
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    return evaluation.stats
