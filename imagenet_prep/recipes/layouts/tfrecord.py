"""TFRecords of Examples that hold images, read in place."""

from __future__ import annotations

from imagenet_prep.recipes.layouts._sample_layout import SampleLayout

_LAYOUT = SampleLayout("tfrecord", lambda inspection: inspection.holders.get("tfrecord", ()))
recognise, describe, recipe = _LAYOUT.recognise, _LAYOUT.describe, _LAYOUT.recipe
