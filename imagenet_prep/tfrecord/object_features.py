"""OBJECT_FEATURES: the features of objects and masks in records of recipes.

They have the names of TensorFlow's Object Detection API (tensorflow/models,
create_coco_tf_record.py and create_pascal_tf_record.py), and of DeepLab (build_data.py there).
"""

from __future__ import annotations

from typing import NamedTuple

from imagenet_prep.tfrecord.example import Kind
from imagenet_prep.tfrecord.inception import EDGES


class ObjectFeature(NamedTuple):
    """A feature, its kind, and how many values it has:
    one per "box", per "point" (of a box), "any", or "one".
    """

    name: str
    kind: Kind
    values: str = "box"


OBJECT_FEATURES = {
    **{f"boxes.{edge}": ObjectFeature(f"image/object/bbox/{edge}", "float") for edge in EDGES},
    "boxes.label": ObjectFeature("image/object/class/label", "int64"),
    "boxes.text": ObjectFeature("image/object/class/text", "bytes"),
    "boxes.crowd": ObjectFeature("image/object/is_crowd", "int64"),
    "boxes.area": ObjectFeature("image/object/area", "float"),
    "boxes.difficult": ObjectFeature("image/object/difficult", "int64"),
    "boxes.truncated": ObjectFeature("image/object/truncated", "int64"),
    "boxes.view": ObjectFeature("image/object/view", "bytes"),
    "boxes.mask": ObjectFeature("image/object/mask", "bytes"),
    "boxes.keypoint_count": ObjectFeature("image/object/keypoint/num", "int64"),
    "boxes.keypoint_x": ObjectFeature("image/object/keypoint/x", "float", "point"),
    "boxes.keypoint_y": ObjectFeature("image/object/keypoint/y", "float", "point"),
    "boxes.keypoint_visibility": ObjectFeature(
        "image/object/keypoint/visibility", "int64", "point"
    ),
    "boxes.keypoint_text": ObjectFeature("image/object/keypoint/text", "bytes", "point"),
    "boxes.source_id": ObjectFeature("image/source_id", "bytes", "one"),
    "boxes.caption": ObjectFeature("image/caption", "bytes", "any"),
    "mask.encoded": ObjectFeature("image/segmentation/class/encoded", "bytes", "one"),
    "mask.format": ObjectFeature("image/segmentation/class/format", "bytes", "one"),
}
"""The features of objects and masks, by the columns of a recipe that fill them."""
