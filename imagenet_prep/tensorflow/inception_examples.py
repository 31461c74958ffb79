"""parse_example, crop_for_training, crop_centre: a record in Inception's format -> its values,
or a square image and its label.

The crops are those of Inception's training and evaluation (tensorflow/models,
inception/image_processing.py, 2016), without its colour distortions.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

NO_LABEL = -1
"""In place of the label of an image without one."""

EVALUATED = 0.875
"""The central part of each side that an evaluation uses."""

_SIDES = ("ymin", "xmin", "ymax", "xmax")
_BOX_SIDES = [f"image/object/bbox/{side}" for side in _SIDES]

_SCALARS = {
    "image/encoded": tf.io.FixedLenFeature([], tf.string),
    "image/class/label": tf.io.FixedLenFeature([], tf.int64, NO_LABEL),
    "image/filename": tf.io.FixedLenFeature([], tf.string, ""),
    "image/class/synset": tf.io.FixedLenFeature([], tf.string, ""),
}


def parse_example(record: Any) -> dict[str, Any]:
    """The values of a record in Inception's format that training needs; ``record`` is a scalar
    string tensor.

    Returns:
        ``encoded``, scalar string, the JPEG; ``label``, scalar int64, as in the record: 1 to 1000
        for ImageNet, -1 where it has none; ``boxes``, float32 of the shape (number of boxes, 4):
        ymin, xmin, ymax, xmax from 0 to 1, as tf.image expects; ``filename`` and ``wnid``, scalar
        strings, empty where the record's maker left them out.
    """
    sides = {side: tf.io.VarLenFeature(tf.float32) for side in _BOX_SIDES}
    features = tf.io.parse_single_example(record, {**_SCALARS, **sides})
    edges = [features[side].values for side in _BOX_SIDES]
    return {
        "encoded": features["image/encoded"],
        "label": features["image/class/label"],
        "boxes": tf.stack(edges, axis=1),
        "filename": features["image/filename"],
        "wnid": features["image/class/synset"],
    }


def crop_for_training(record: Any, seeds: Any, image_size: int) -> tuple[Any, Any]:
    """An image, cropped and mirrored at random, and its label as in the record.

    ``seeds`` are two int64 numbers that decide the crop; None: it is never the same.
    """
    example = parse_example(record)
    encoded = example["encoded"]
    if seeds is None:
        seed_pair = tf.random.uniform([2], maxval=2**31 - 1, dtype=tf.int32)
    else:
        seed_pair = tf.cast(seeds % 2**31, tf.int32)
    shape = tf.image.extract_jpeg_shape(encoded)
    boxes = tf.clip_by_value(example["boxes"], 0, 1)
    corner, extent, _ = tf.image.stateless_sample_distorted_bounding_box(
        shape,
        boxes[tf.newaxis],
        seed=seed_pair,
        min_object_covered=0.1,
        aspect_ratio_range=(3 / 4, 4 / 3),
        area_range=(0.05, 1),
        use_image_if_no_bounding_boxes=True,
    )
    top, left = corner[0], corner[1]
    height, width = extent[0], extent[1]
    window = tf.stack([top, left, height, width])
    image = tf.image.decode_and_crop_jpeg(encoded, window, channels=3)
    image = tf.image.stateless_random_flip_left_right(image, seed=seed_pair + 1)
    return _resize(image, image_size), example["label"]


def crop_centre(record: Any, image_size: int) -> tuple[Any, Any]:
    """The central part of an image, and its label as in the record."""
    example = parse_example(record)
    encoded = example["encoded"]
    shape = tf.image.extract_jpeg_shape(encoded)
    height_and_width = shape[:2]
    evaluated = tf.cast(height_and_width, tf.float32) * EVALUATED
    extent = tf.cast(evaluated, tf.int32)
    extent = tf.maximum(extent, 1)
    corner = (height_and_width - extent) // 2
    window = tf.concat([corner, extent], 0)
    image = tf.image.decode_and_crop_jpeg(encoded, window, channels=3)
    return _resize(image, image_size), example["label"]


def _resize(image: Any, image_size: int) -> Any:
    """A square image, float32 from 0 to 1."""
    pixels = tf.cast(image, tf.float32) / 255
    square = tf.image.resize(pixels, [image_size, image_size])
    return tf.ensure_shape(square, [image_size, image_size, 3])


def _label_below(first_label: int) -> str:
    """The message on a label below that of the first class; the label follows."""
    advice = f"write the records again, with labels from {first_label} up"
    if first_label > 0:
        advice = "if 0 is the first class, call dataset(..., first_label=0)"
    return (
        f"a record has a label below {first_label}, that of the first class; {advice}; its label:"
    )


def count_label_from_0(
    first_label: int, unlabelled: int | None, image: Any, label: Any
) -> tuple[Any, Any]:
    """The image, and its label counted from 0 as Record.class_index."""
    is_labelled = label != NO_LABEL
    if unlabelled is None:
        tf.debugging.assert_equal(is_labelled, True, "a record has no label: give unlabelled=-1")
    smallest = tf.cast(first_label, tf.int64)
    is_unlabelled = tf.logical_not(is_labelled)
    is_class = tf.logical_or(is_unlabelled, label >= smallest)
    tf.debugging.Assert(is_class, [_label_below(first_label), label])
    replacement = tf.cast(unlabelled or 0, tf.int64)
    return image, tf.where(is_labelled, label - smallest, replacement)
